import { expectedDeliveries } from '@millrace/examples/orders/expected';
import { differences, readPublishedRows } from '../support/json-lines.ts';
import { eventually, TestStack } from '../support/test-stack.ts';

const orders = 200_000;
const recordsPerSecond = 3_000;
const steps = [4, 1, 2];
const roundsWanted = 10;

/** A job under load goes 2 → 4 → 1 → 2 ten times; rejects unless its output is exact. Prints how long no record was read. */
export async function soakRescale(timeMs: number): Promise<void> {
  await using run = await TestStack.start({ runners: 2, slots: 2 });
  const until = performance.now() + timeMs;
  const output = run.path('out');
  const id = 'rescaled';
  const options = { output, orders, recordsPerSecond };
  const job = await run.client.startJob({ job: 'orders', id, parallelism: 2, checkpointIntervalMs: 1000, options });
  await eventually('a checkpoint', 120_000, async () => ((await job.rounds()).length > 0 ? true : undefined));
  const downtimes: number[] = [];
  for (let round = 1; round <= roundsWanted && performance.now() < until; round++) {
    for (const parallelism of steps) {
      if ((await job.status()).state === 'finished') break;
      const { from, to, downtimeMs } = await (await run.client.rescale({ job: id, parallelism })).result();
      downtimes.push(downtimeMs ?? 0);
      console.log(`round ${round}: ${from} → ${to}, ${downtimeMs} ms without records`);
    }
  }
  const end = await job.result();
  const wrong = differences(readPublishedRows(output), expectedDeliveries(orders));
  if (wrong.length > 0) throw new Error(`generation ${end.generation}: ${wrong.join('\n')}`);
  const sorted = downtimes.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  console.log(`${downtimes.length} rescales, exact; without records: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}
