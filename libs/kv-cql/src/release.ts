/**
 * Forgets a snapshot. When it was the last of its table, and the table is neither open nor read by another, nothing can ever
 * read its rows: all of them are removed, with a timestamp that those of later incarnations are beyond.
 */
import type { Catalog } from './catalog.ts';
import type { Ring } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import { lastTimestampOf } from './writer.ts';

export interface SnapshotName {
  readonly job: string;
  readonly snapshot: string;
}

const partitionsAtOnce = 100;

/** Resolves to the table whose snapshot it was; undefined when it was gone already. */
export async function releaseSnapshot(
  ring: Ring,
  catalog: Catalog,
  settings: CqlSettings,
  { job, snapshot }: SnapshotName,
): Promise<string | undefined> {
  const all = await catalog.snapshots(job);
  const released = all.get(snapshot);
  if (released === undefined) return undefined;
  await catalog.removeSnapshot(job, snapshot);
  const { table, spans } = released;
  const isLast = ![...all].some(([id, one]) => id !== snapshot && one.table === table);
  // An open begins with a new incarnation, so what it writes after this is not touched; its lease says that it is there.
  const newest = isLast ? await catalog.newestIncarnation(table) : undefined;
  if (newest === undefined || (await catalog.isOpen(table)) || (await catalog.pins(table)).size > 0) return table;
  await removeEntries(ring, settings, { ...newest, shards: released.shards });
  const beneath = new Set(spans.flatMap(({ layers }) => layers.map((layer) => layer.table)));
  beneath.delete(table);
  for (const other of beneath) await catalog.removePins(other, `${table}@`);
  return table;
}

async function removeEntries(
  ring: Ring,
  settings: CqlSettings,
  { table, incarnation, buckets, shards }: { table: string; incarnation: number; buckets: number; shards: number },
): Promise<void> {
  const query = `DELETE FROM ${settings.keyspace}.versions WHERE table_id = ? AND shard = ? AND bucket = ?`;
  const partitions = Array.from({ length: shards * buckets }, (_, i) => [Math.floor(i / buckets), i % buckets]);
  for (let i = 0; i < partitions.length; i += partitionsAtOnce) {
    const some = partitions
      .slice(i, i + partitionsAtOnce)
      .map((partition) => ({ query, params: [table, ...partition] }));
    await ring.write(some, lastTimestampOf(incarnation));
  }
}
