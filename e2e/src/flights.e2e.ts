import { expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { TestStack } from './support/test-stack.ts';

for (const { runners, slots } of [
  { runners: 1, slots: 2 },
  { runners: 2, slots: 1 },
]) {
  test(`three million flights through ${runners} runner(s) with ${slots} slot(s) give exactly the independent result`, async () => {
    await using run = await TestStack.start({ runners, slots });
    const output = run.path('out');
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: runners * slots,
      checkpointIntervalMs: 1000,
      options: { output },
    });
    const end = await job.result();
    expect(end).toMatchObject({ state: 'finished', generation: 1 });
    expect(end.checkpoints).toBeGreaterThan(1);
    await expectExactFlights(output);
  });
}
