import { fetchLiveFigures } from '@millrace/cli';
import { expectedFlights } from '@millrace/examples/flights/expected';
import { flightsFile } from '@millrace/examples/flights/file';
import { expect, test } from 'vitest';
import { differences, readPublishedRows } from './support/json-lines.ts';
import { eventually, registeredRounds, TestStack } from './support/test-stack.ts';

for (const victim of ['control-plane', 'temporal'] as const) {
  test(`the ${victim} is killed during the job: records go on, rounds resume, the result is exact`, async () => {
    await using run = await TestStack.start({ runners: 1, slots: 2 });
    const output = run.path('out');
    const job = await run.client.startJob({
      job: 'flights',
      parallelism: 2,
      checkpointIntervalMs: 1000,
      options: { output, recordsPerSecond: 100_000 },
    });
    await eventually('three rounds', 60_000, async () =>
      (await registeredRounds(job)).length >= 3 ? true : undefined,
    );
    const recordsBefore = await recordsRead(run);
    run.kill(victim);
    const killedAtMs = performance.now();
    await eventually('the stack answers again', 60_000, async () =>
      run.events.some((event) => /starting it again/.test(event)) ? true : undefined,
    );
    const afterKill = await eventually('live figures', 60_000, () => recordsRead(run));
    const outageSeconds = (performance.now() - killedAtMs) / 1000;
    const last = Math.max(
      ...(await eventually('rounds can be read', 60_000, () => registeredRounds(job).catch(() => undefined))),
    );
    await eventually('a later round', 60_000, async () => {
      const rounds = await registeredRounds(job).catch(() => []);
      return rounds.some((round) => round > last) ? true : undefined;
    });
    // The same attempt went on: no failover, and records were read while nobody coordinated.
    expect((await job.status()).generation).toBe(1);
    expect(afterKill - (recordsBefore ?? 0)).toBeGreaterThan(outageSeconds * 20_000);
    await expect(job.result()).resolves.toMatchObject({ state: 'finished', generation: 1 });
    const expected = await expectedFlights(flightsFile);
    expect(differences(readPublishedRows(`${output}/airport-days`), expected.airportDays)).toEqual([]);
    expect(differences(readPublishedRows(`${output}/routes`), expected.routes)).toEqual([]);
  });
}

async function recordsRead(run: TestStack): Promise<number | undefined> {
  return (await fetchLiveFigures(run.stack.console, 'flights'))?.recordsRead;
}
