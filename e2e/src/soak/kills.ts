import { expectedDeliveries } from '@millrace/examples/orders/expected';
import type { Random } from '@millrace/kernel';
import { differences, readPublishedRows } from '../support/json-lines.ts';
import { killRunners } from '../support/kill-runners.ts';
import { TestStack } from '../support/test-stack.ts';

const orders = 60_000;

/** Runs of the job `orders` on two runners until the time is over; rejects at the first result that is not exact. */
export async function soakKills(timeMs: number, random: Random): Promise<void> {
  const expected = expectedDeliveries(orders);
  const until = performance.now() + timeMs;
  let killed = 0;
  let runs = 0;
  await using run = await TestStack.start({ runners: 2, slots: 1 });
  while (performance.now() < until) {
    const id = `orders-${++runs}`;
    const output = run.path(id);
    const job = await run.client.startJob({
      job: 'orders',
      id,
      parallelism: 2,
      checkpointIntervalMs: 500,
      options: { output, orders, recordsPerSecond: 6000 },
    });
    killed += await killRunners({ run, job, kills: 1 + random.below(5), runners: 2, random, delayMaxMs: 4000 });
    const end = await job.result();
    const wrong = differences(readPublishedRows(output), expected);
    if (wrong.length > 0) throw new Error(`run ${runs}, generation ${end.generation}: ${wrong.join('\n')}`);
    console.log(`run ${runs}: exact after ${killed} kills in all, generation ${end.generation}`);
  }
}
