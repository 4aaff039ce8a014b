import { parseArgs } from 'node:util';
import { aec } from './aec.ts';
import { compaction } from './compaction.ts';
import { diskCache } from './disk-cache/disk-cache.ts';
import { exchange } from './exchange.ts';
import { kvPath } from './kv-path.ts';
import { lsm } from './lsm/lsm.ts';
import { slot } from './slot.ts';
import { wordcount } from './wordcount.ts';

const usage = `npm run bench -- wordcount [--json] [--flink DIR] [--keys 100000,1000000] [--p 1,2] [--seconds 20]
                             [--repeats 3] [--backends forst,rocksdb,hashmap] [--interval 5000] [--read-both 0]
                             [--slot-memory 2g]
npm run bench -- slot      [--json] [--keys …] [--seconds 20] [--repeats 3] [--interval 5000] [--read-both 0]
npm run bench -- aec       [--json]
npm run bench -- exchange  [--json] [--repeats 3]
npm run bench -- kv-path   [--json]
npm run bench -- lsm       [--json] [--keys 1000000] [--values 100,1000] [--repeats 3]
npm run bench -- compaction [--json] [--keys 1000000] [--seconds 20] [--repeats 3] [--interval 5000]
npm run bench -- disk-cache [--json] [--record 60]

wordcount     the whole stack; slot: one slot alone in this process, for profiles
aec           throughput by state latency and in-flight limit; the controller against a bare loop
disk-cache    hit ratios of the disk cache's policies, on recorded traces and on models; --record runs the jobs and writes
              their traces anew
kv-path       state of a slot in a state-service with shards: batching, reads of nothing, hot keys
lsm           the embedded store against RocksDB by its best binding for Node
compaction    the whole stack with state merged in the slots and by two compactors
exchange      frames between two runners over gRPC, over bare TCP, and between two slots of one process
--read-both 1  read the old payload, too, before it is replaced
--flink DIR   also run Apache Flink on the same work (a directory with the peer's run.sh) and print ratios`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
    flink: { type: 'string' },
    keys: { type: 'string', default: '100000,1000000' },
    p: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '20' },
    repeats: { type: 'string', default: '3' },
    backends: { type: 'string', default: 'forst,rocksdb,hashmap' },
    interval: { type: 'string', default: '5000' },
    'read-both': { type: 'string', default: '0' },
    'slot-memory': { type: 'string', default: '2g' },
    record: { type: 'string' },
    values: { type: 'string', default: '100,1000' },
  },
});

const numbers = (text: string): number[] => text.split(',').map(Number);

const common = {
  json: values.json,
  keys: numbers(values.keys),
  seconds: Number(values.seconds),
  repeats: Number(values.repeats),
  readBoth: values['read-both'] === '1',
  checkpointIntervalMs: Number(values.interval),
};
const benches: Readonly<Record<string, () => Promise<void>>> = {
  aec: () => aec(common),
  compaction: () => compaction(common),
  'disk-cache': () => {
    return diskCache({
      json: values.json,
      recordSeconds: values.record === undefined ? undefined : Number(values.record),
    });
  },
  exchange: () => exchange(common),
  'kv-path': () => kvPath(common),
  lsm: () =>
    lsm({
      json: values.json,
      keys: numbers(process.argv.includes('--keys') ? values.keys : '1000000'),
      valueBytes: numbers(values.values),
      repeats: common.repeats,
    }),
  slot: () => slot(common),
  wordcount: () =>
    wordcount({
      ...common,
      flink: values.flink,
      parallelism: numbers(values.p),
      backends: values.backends.split(','),
      slotMemory: values['slot-memory'],
    }),
};
const bench = benches[positionals[0] ?? ''];

if (values.help || bench === undefined) {
  console.log(usage);
  process.exitCode = values.help ? 0 : 2;
} else await bench();
