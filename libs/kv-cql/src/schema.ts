import type { CqlSettings } from './settings.ts';

/**
 * What is stored in the ring.
 *
 * - `versions`: one row for each version of a key. `value` is null for a delete, and when the ring has expired it: the row
 *   itself does not expire, so that it goes on to hide the versions beneath it until the purge removes them all.
 * - `tables`: the newest incarnation and generation of each table, changed by compare-and-set only.
 * - `snapshots`: what each snapshot is made of. `pins`: what other tables read of a table (forks).
 * - `leases`: tables that are open; a row vanishes when its owner is silent.
 */
export function createKeyspace({ keyspace, replicationFactor, localDataCenter }: CqlSettings): string {
  const replication = `{'class': 'NetworkTopologyStrategy', '${localDataCenter.replaceAll("'", "''")}': ${replicationFactor}}`;
  return `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = ${replication}`;
}

/** The statement that makes each table, by the table's name. */
export function createTables({ keyspace }: CqlSettings): ReadonlyMap<string, string> {
  const columns = {
    versions: `table_id text, shard int, bucket int, key blob, epoch bigint, value blob, expires_at bigint,
      PRIMARY KEY ((table_id, shard, bucket), key, epoch)) WITH CLUSTERING ORDER BY (key ASC, epoch DESC)
      AND compaction = {'class': 'LeveledCompactionStrategy'}`,
    tables: 'table_id text PRIMARY KEY, incarnation bigint, generation bigint, shards int, buckets int)',
    snapshots: 'job text, id text, table_id text, shards int, entry_count bigint, spans text, PRIMARY KEY (job, id))',
    pins: 'table_id text, pin text, job text, spans text, PRIMARY KEY (table_id, pin))',
    leases: 'table_id text, incarnation bigint, PRIMARY KEY (table_id, incarnation))',
  };
  return new Map(
    Object.entries(columns).map(([name, rest]) => [name, `CREATE TABLE IF NOT EXISTS ${keyspace}.${name} (${rest}`]),
  );
}
