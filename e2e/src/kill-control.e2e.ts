import { fetchLiveFigures } from '@millrace/cli';
import { expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { eventually, registeredRounds, TestStack } from './support/test-stack.ts';

const rows = 500_000;

for (const victim of ['control-plane', 'temporal'] as const) {
  test(`the ${victim} is killed during the job: records go on, rounds resume, the result is exact`, async () => {
    await using run = await TestStack.start({ runners: 1, slots: 2 });
    const output = run.path('out');
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: 2,
      checkpointIntervalMs: 1000,
      options: { output, rows, recordsPerSecond: 20_000 },
    });
    await eventually('three rounds', 60_000, async () =>
      (await registeredRounds(job)).length >= 3 ? true : undefined,
    );
    const before = await eventually('live figures', 10_000, () => recordsRead(run));
    run.kill(victim);
    const killedAtMs = performance.now();
    await eventually('the death is noticed', 60_000, () =>
      run.events.some((event) => /starting it again/.test(event)) ? true : undefined,
    );
    const after = await eventually('live figures', 60_000, () => recordsRead(run));
    const outageSeconds = (performance.now() - killedAtMs) / 1000;
    const last = Math.max(
      0,
      ...(await eventually('rounds can be read', 60_000, () => registeredRounds(job).catch(() => undefined))),
    );
    await eventually('a later round', 60_000, async () => {
      const rounds = await registeredRounds(job).catch(() => []);
      return rounds.some((round) => round > last) ? true : undefined;
    });
    // The same attempt went on: no failover, and records were read while nobody coordinated.
    expect(await job.status()).toMatchObject({ state: 'running', generation: 1, failures: 0 });
    console.log(`${victim}: ${after - before} records in ${outageSeconds.toFixed(1)} s of outage`);
    expect(after - before).toBeGreaterThan(outageSeconds * 1000);
    await expect(job.result()).resolves.toMatchObject({ state: 'finished', generation: 1 });
    await expectExactFlights(output, rows);
  });
}

async function recordsRead(run: TestStack): Promise<number | undefined> {
  return (await fetchLiveFigures(run.stack.console, 'flights'))?.recordsRead;
}
