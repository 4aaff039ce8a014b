import { expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { TestStack } from './support/test-stack.ts';

for (const { rows, runners, slots, checkpointMode } of [
  { rows: 3_000_000, runners: 1, slots: 2, checkpointMode: 'aligned' },
  { rows: 1_000_000, runners: 2, slots: 1, checkpointMode: 'unaligned' },
] as const) {
  test(`${rows / 1_000_000} million flights through ${runners} runner(s) with ${slots} slot(s), ${checkpointMode}, give exactly the independent result`, async () => {
    await using run = await TestStack.start({ runners, slots });
    const output = run.path('out');
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: runners * slots,
      checkpointIntervalMs: 1000,
      checkpointMode,
      options: { output, rows },
    });
    const end = await job.result();
    expect(end).toMatchObject({ state: 'finished', generation: 1 });
    expect(end.checkpoints).toBeGreaterThan(1);
    await expectExactFlights(output, rows);
  });
}
