import { type Clock, isPending, type MaybePromise } from '@millrace/kernel';
import type { Histogram, Telemetry, TraceContext } from '@millrace/telemetry';
import type { PackedKeys, PackedValues } from '../packed.ts';
import type {
  Peek,
  ScanPage,
  ScanRange,
  SnapshotHandle,
  StateStore,
  StateTable,
  TableSpec,
  TableStats,
  ValueView,
} from '../store.ts';
import type { WriteBatch } from '../write-batch.ts';

/** What has been asked of one table since it was opened. */
class Counts {
  reads = 0;
  readNulls = 0;
  readBytes = 0;
  readRequests = 0;
  writes = 0;
  deletes = 0;
  writtenBytes = 0;
  writeRequests = 0;
  seeks = 0;
}

const help: Readonly<Record<keyof Counts, readonly [name: string, text: string]>> = {
  reads: ['millrace_state_reads', 'Keys looked for in the state store'],
  readNulls: ['millrace_state_read_nulls', 'of these, keys that have no value'],
  readBytes: ['millrace_state_read_bytes', 'Bytes of values found'],
  readRequests: ['millrace_state_read_requests', 'Requests that read keys had to wait for, many keys each'],
  writes: ['millrace_state_writes', 'Values written to the state store'],
  deletes: ['millrace_state_deletes', 'Keys deleted in it'],
  writtenBytes: ['millrace_state_written_bytes', 'Bytes of keys and values written'],
  writeRequests: ['millrace_state_write_requests', 'Batches in which they were written'],
  seeks: ['millrace_state_seeks', 'Scans begun'],
};

/**
 * A store whose tables count what is asked of them, by operator: reads, those that find nothing, writes, deletes, scans; how
 * many, how long, how large. Reads that the working set or the slot's caches answer do not come here.
 */
export function meteredStore(
  store: StateStore,
  { clock, telemetry }: { clock: Clock; telemetry: Telemetry },
): StateStore {
  const { metrics } = telemetry;
  const latency = metrics.histogram('millrace_state_request_ms', 'Time of a request to the state store, by kind');
  return {
    get name() {
      return store.name;
    },
    ...(store.retained === undefined ? {} : { retained: store.retained }),
    openTable: async (spec, restore, parent) => {
      const table = await store.openTable(spec, restore, parent);
      return new MeteredTable(table, { clock, latency, metrics });
    },
    close: () => store.close(),
  };
}

interface Meters {
  readonly clock: Clock;
  readonly latency: Histogram;
  readonly metrics: Telemetry['metrics'];
}

class MeteredTable implements StateTable {
  readonly spec: TableSpec;
  readonly #table: StateTable;
  readonly #meters: Meters;
  readonly #counts = new Counts();
  readonly #unobserve: readonly (() => void)[];

  constructor(table: StateTable, meters: Meters) {
    this.#table = table;
    this.#meters = meters;
    this.spec = table.spec;
    const labels = { operator: table.spec.operator };
    this.#unobserve = Object.entries(help).map(([field, [name, text]]) =>
      meters.metrics.gauge(name, text, () => this.#counts[field as keyof Counts], labels),
    );
  }

  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek {
    const answer = this.#table.peek(keyBytes, start, end, into);
    if (answer === 'unknown') return answer; // asked for again
    this.#counts.reads++;
    if (answer === 'absent') this.#counts.readNulls++;
    else this.#counts.readBytes += into.end - into.start;
    return answer;
  }

  multiGet(keys: PackedKeys, parent?: TraceContext): MaybePromise<PackedValues> {
    const counts = this.#counts;
    counts.reads += keys.count;
    counts.readRequests++;
    const startMs = this.#meters.clock.monotonicMs();
    const values = this.#table.multiGet(keys, parent);
    if (!isPending(values)) return this.#read(values, startMs);
    return values.then((packed) => this.#read(packed, startMs));
  }

  write(batch: WriteBatch): MaybePromise<void> {
    const counts = this.#counts;
    for (let i = 0; i < batch.count; i++) if (batch.isDelete(i)) counts.deletes++;
    counts.writes += batch.count;
    counts.writtenBytes += batch.arena.position;
    counts.writeRequests++;
    const startMs = this.#meters.clock.monotonicMs();
    const writing = this.#table.write(batch);
    if (!isPending(writing)) {
      this.#took('write', startMs);
      return undefined;
    }
    return writing.then(() => this.#took('write', startMs));
  }

  scan(range: ScanRange, parent?: TraceContext): AsyncIterable<ScanPage> {
    this.#counts.seeks++;
    return this.#pages(this.#table.scan(range, parent), this.#meters.clock.monotonicMs());
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    const startMs = this.#meters.clock.monotonicMs();
    const handle = await this.#table.snapshot(checkpoint, parent);
    this.#took('snapshot', startMs);
    return handle;
  }

  stats(): TableStats {
    return this.#table.stats();
  }

  close(): Promise<void> {
    for (const unobserve of this.#unobserve) unobserve();
    return this.#table.close();
  }

  async *#pages(pages: AsyncIterable<ScanPage>, startMs: number): AsyncGenerator<ScanPage> {
    let isFirst = true;
    for await (const page of pages) {
      if (isFirst) this.#took('seek', startMs);
      isFirst = false;
      this.#counts.readBytes += page.values.bytes.length;
      yield page;
    }
  }

  #read(values: PackedValues, startMs: number): PackedValues {
    let nulls = 0;
    for (let i = 0; i < values.count; i++) if (values.present[i] === 0) nulls++;
    this.#counts.readNulls += nulls;
    this.#counts.readBytes += values.bytes.length;
    this.#took('read', startMs);
    return values;
  }

  #took(kind: string, startMs: number): void {
    this.#meters.latency.record(this.#meters.clock.monotonicMs() - startMs, { kind });
  }
}
