import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { differences, type Query, queries } from '@millrace/examples/nexmark/expected';
import { type CheckpointMode, runWithFailures } from '@millrace/examples/nexmark/run-with-failures';
import { type Site, type SiteSettings, siteOf } from '@millrace/examples/nexmark/site';
import { readPublishedRows } from '../support/json-lines.ts';
import { LsmStores } from '../support/lsm-stores.ts';

export interface NexmarkSoakOptions {
  /** `q5`, …; all when there are none. */
  readonly queries: readonly string[];
  readonly events: number;
}

const modes: readonly CheckpointMode[] = ['aligned', 'unaligned'];

/**
 * Each query on so many events, in each mode of checkpoint, with a crash in the middle and a restore at another
 * parallelism: every row is compared with the reference. The slots are in this process, their state in the LSM.
 */
export async function soakNexmark({ queries: names, events }: NexmarkSoakOptions): Promise<void> {
  const unknown = names.filter((name) => !queries.includes(name as Query));
  if (unknown.length > 0) throw new Error(`there is no query ${unknown.join(', ')}; there are ${queries.join(', ')}`);
  // Two minutes of each million around midnight, out of order by up to half a second.
  const startMs = Date.UTC(2015, 6, 15) - 60_000;
  const settings: SiteSettings = { events, eventsPerSecond: 8000, outOfOrdernessMs: 500, startMs };
  const site = siteOf(settings);
  const wrong: string[] = [];
  for (const query of (names.length === 0 ? queries : names) as readonly Query[]) {
    for (const mode of modes) wrong.push(...(await soakQuery(query, mode, settings, site)));
  }
  if (wrong.length > 0) throw new Error(`not exact: ${wrong.join(', ')}`);
}

async function soakQuery(query: Query, mode: CheckpointMode, settings: SiteSettings, site: Site): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), `nexmark-${query}-`));
  const begun = performance.now();
  try {
    await using stores = new LsmStores(directory, `nexmark-${query}`);
    const output = join(directory, 'rows');
    const end = await runWithFailures({ query, modes: [mode], output, ...settings }, (generation) =>
      stores.open(generation),
    );
    const rows = readPublishedRows(output);
    const found = differences(query, rows, site);
    const overtaken = mode === 'unaligned' ? `, ${end.overtakenBytes[0]} bytes overtaken` : '';
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(
      `${query} ${mode}: ${found.length === 0 ? 'exact' : 'WRONG'}, ${rows.length} rows, restored at event ${end.restoredAt}${overtaken}, ${seconds} s`,
    );
    for (const one of found) console.log(`  ${one}`);
    return found.length === 0 ? [] : [`${query} ${mode}`];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
