import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { differences, type Query, queries } from './expected/expected.ts';
import { type SiteSettings, siteOf } from './expected/site.ts';
import { runWithFailure } from './run-with-failure.ts';

/** NEXMARK_EVENTS raises the number. */
const events = Number(process.env['NEXMARK_EVENTS'] ?? 20_000);

/** 50 seconds of event time around midnight; query 14 has some hours around seven in the morning. */
function settingsOf(query: Query): SiteSettings {
  const midnightMs = Date.UTC(2015, 6, 15);
  if (query === 'q14')
    return { events, eventsPerSecond: 2, outOfOrdernessMs: 500, startMs: midnightMs + 6 * 3_600_000 };
  return { events, eventsPerSecond: 400, outOfOrdernessMs: 500, startMs: midnightMs - 23_000 };
}

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nexmark-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe.each(['aligned', 'unaligned'] as const)('with %s checkpoints and a crash in the middle, Nexmark', (mode) => {
  let overtakenBytes = 0;

  it.each(queries)('%s has the rows of a plain loop', async (query) => {
    const settings = settingsOf(query);
    const output = join(directory, `${mode}-${query}`);
    const end = await runWithFailure({ query, mode, output, ...settings });
    overtakenBytes += end.overtakenBytes;
    expect(differences(query, await readOutput(output), siteOf(settings))).toEqual([]);
    expect(end.checkpointAt).toBeLessThan(events);
    expect(end.crashAt).toBeGreaterThan(end.checkpointAt);
  });

  it(`${mode === 'aligned' ? 'stores nothing of what was in flight' : 'replays what was in flight'}`, () => {
    if (mode === 'aligned') expect(overtakenBytes).toBe(0);
    else expect(overtakenBytes).toBeGreaterThan(0);
  });
});
