/**
 * Nanoseconds of CPU time (garbage collection included) per record that the controller itself costs, one process, keys from a ring of 10,000.
 * Not measured: state access, codecs, garbage of real records. Run: node libs/aec/src/aec.bench.ts
 */
import { AsyncExecutionController } from './controller.ts';

const records = 1_000_000;
const keys = 10_000;

function cpuNs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

async function run(name: string, handle: (record: number) => void | Promise<void>): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const aec = new AsyncExecutionController<number, number>({ handle });
    const startNs = cpuNs();
    for (let i = 0; i < records; i++) {
      const wait = aec.admit(i % keys, i);
      if (wait !== undefined) await wait;
    }
    await aec.drain();
    const ns = (cpuNs() - startNs) / records;
    if (round > 0) console.log(`${name}: ${ns.toFixed(0)} ns per record`);
  }
}

let sum = 0;
const done = Promise.resolve();
function work(record: number): void {
  sum += record;
}
async function later(record: number): Promise<void> {
  await done;
  sum += record;
}

await run('synchronous handler', work);
await run('handler returns a settled promise', () => done);
await run('handler finishes in a microtask', later);
await run('every second record asynchronous', (record) => (record % 2 === 0 ? work(record) : later(record)));
const hot = new AsyncExecutionController<number, number>({ handle: later });
const startNs = cpuNs();
for (let i = 0; i < records; i++) {
  const wait = hot.admit(0, i);
  if (wait !== undefined) await wait;
}
await hot.drain();
console.log(`one key, in a microtask: ${((cpuNs() - startNs) / records).toFixed(0)} ns per record`);
if (sum === 0) throw new Error('nothing ran');
