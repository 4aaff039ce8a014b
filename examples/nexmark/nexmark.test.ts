import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryStateStore } from '@millrace/streams/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { differences, expectedRows, type Query, queries } from './expected/expected.ts';
import { type Site, type SiteSettings, siteOf } from './expected/site.ts';
import { runWithFailures } from './run-with-failures.ts';

const events = 20_000;
const midnightMs = Date.UTC(2015, 6, 15);

/** 50 seconds of event time around midnight; and three hours of the morning, in which bids change their time of day. */
const dense: SiteSettings = { events, eventsPerSecond: 400, outOfOrdernessMs: 500, startMs: midnightMs - 23_000 };
const sparse: SiteSettings = { ...dense, eventsPerSecond: 2, startMs: midnightMs + 6 * 3_600_000 };
const sites = new Map<SiteSettings, Site>();

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nexmark-'));
  for (const settings of [dense, sparse]) sites.set(settings, siteOf(settings));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('Nexmark, through a crash after an aligned checkpoint and one after an unaligned one', () => {
  let overtakenBytes = 0;

  it.each(queries)('%s has the rows of a plain loop', async (query: Query) => {
    const settings = query === 'q14' ? sparse : dense;
    const output = join(directory, query);
    const store = Promise.resolve(new MemoryStateStore());
    const end = await runWithFailures({ query, modes: ['aligned', 'unaligned'], output, ...settings }, () => store);
    expect(differences(query, await readOutput(output), sites.get(settings) as Site)).toEqual([]);
    expect(end.restoredAt).toBeGreaterThan(0);
    expect(end.restoredAt).toBeLessThan(events);
    expect(end.overtakenBytes[0]).toBe(0);
    overtakenBytes += end.overtakenBytes[1] as number;
  });

  it('replays what barriers have overtaken', () => {
    expect(overtakenBytes).toBeGreaterThan(0);
  });
});

describe('the comparison', () => {
  it('finds a row that is missing, one that is told twice and one that is wrong', () => {
    const site = siteOf({ ...dense, events: 6000 });
    for (const query of queries) {
      const lines = expectedRows[query].rows(site).map((row) => JSON.stringify(row));
      // The output of query 12 has windows, which the reference does not.
      if (query === 'q12') continue;
      expect({ query, found: differences(query, lines, site) }).toEqual({ query, found: [] });
      expect({ query, found: differences(query, lines.slice(1), site).length }).toEqual({ query, found: 1 });
      const wrong = (lines[0] as string).replace(/\d/, (digit) => `${(Number(digit) + 1) % 10}`);
      expect({ query, found: differences(query, lines.with(0, wrong), site) }).not.toEqual({ query, found: [] });
      // A row that replaces itself is allowed where rows replace each other.
      const doubled = differences(query, [...lines, lines[0] as string], site).length;
      expect({ query, found: doubled === 1 || query === 'q19' }).toEqual({ query, found: true });
    }
  });
});
