/**
 * Shards on a ring that speaks CQL (Cassandra, ScyllaDB): the state store `cql`. Rows carry the epoch that they were written
 * in (see lineage.ts), so a snapshot is a number, and a restore, at whatever parallelism, changes only who reads which shards;
 * no state is moved. Any number of processes may serve the same keyspace.
 */
import { type Clock, MillraceError, type Timer } from '@millrace/kernel';
import {
  checkCoverage,
  Generations,
  overlap,
  type RetainedSnapshots,
  type SnapshotHandle,
  type StateStore,
  type StateTable,
  type TableSpec,
} from '@millrace/state';
import type { Counter, TraceContext } from '@millrace/telemetry';
import { Catalog, type Incarnation, leaseMs, tableIdOf } from './catalog.ts';
import { CqlTable } from './cql-table.ts';
import { sequenceMax } from './lineage.ts';
import { releaseSnapshot } from './release.ts';
import { Ring, type RingServices } from './ring.ts';
import type { CqlSettings } from './settings.ts';
import { clipSpans, continueSpans, type Span } from './spans.ts';

export interface CqlStoreOptions extends RingServices {
  readonly settings: CqlSettings;
  /** Time of what is stored: what has expired. `clock` is that of retries and of the purge. */
  readonly stateClock: Clock;
}

const purgeIntervalMs = 250;
const leaseIntervalMs = leaseMs / 4;

/** Connects to the ring. */
export async function openCqlStore(options: CqlStoreOptions): Promise<StateStore> {
  return new CqlStore(options, await Ring.open(options.settings, options));
}

class CqlStore implements StateStore {
  readonly name = 'cql';
  readonly retained: RetainedSnapshots;
  readonly #options: CqlStoreOptions;
  readonly #ring: Ring;
  readonly #catalog: Catalog;
  readonly #generations = new Generations();
  readonly #tables = new Set<CqlTable>();
  readonly #purged: Counter;
  readonly #unobserve: () => void;
  #purgeTimer: Timer;
  #leaseTimer: Timer;
  #leasedAtMs: number;
  #working: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: CqlStoreOptions, ring: Ring) {
    const { settings, random, telemetry, clock } = options;
    this.#options = options;
    this.#ring = ring;
    this.#catalog = new Catalog(ring, settings, random);
    this.retained = {
      jobs: () => this.#catalog.jobs(),
      list: async (job) => [...(await this.#catalog.snapshots(job)).keys()],
      release: (job, snapshot) => this.#release(job, snapshot),
    };
    this.#purged = telemetry.metrics.counter('millrace_cql_rows_purged_total', 'Rows that nobody needs, removed');
    this.#unobserve = telemetry.metrics.gauge(
      'millrace_cql_tables',
      'Tables open in the ring',
      () => this.#tables.size,
    );
    this.#leasedAtMs = clock.monotonicMs();
    this.#purgeTimer = this.#schedulePurge();
    this.#leaseTimer = this.#scheduleLeases();
  }

  openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    const attributes = { 'millrace.operator': spec.operator, 'millrace.handles': restore.length };
    return this.#options.telemetry.tracer.span('state.restore', { parent, attributes }, () =>
      this.#open(spec, restore),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(spec: TableSpec, restore: readonly SnapshotHandle[]): Promise<StateTable> {
    this.#checkOpen();
    if (restore.length > 0) checkCoverage(spec, restore);
    const own = await this.#catalog.claim(spec);
    const claim = this.#generations.claim(spec);
    const begun = await this.#begin(spec, restore, own);
    await this.#catalog.putLease(own.table, own.incarnation);
    this.#checkOpen();
    claim.check();
    const table = new CqlTable({
      ...this.#options,
      ...begun,
      clock: this.#options.stateClock,
      spec,
      own,
      ring: this.#ring,
      catalog: this.#catalog,
      restored: restore.length > 0,
      claim,
      onClose: () => this.#tables.delete(table),
    });
    this.#tables.add(table);
    return table;
  }

  /** What a table begins with: the snapshots' spans, clipped, beneath its own rows. */
  async #begin(
    spec: TableSpec,
    restore: readonly SnapshotHandle[],
    { table, incarnation, buckets }: Incarnation,
  ): Promise<{ readonly spans: readonly Span[]; readonly entries: number }> {
    const layer = { table, buckets, lineage: [{ incarnation, sequence: sequenceMax }] };
    if (restore.length === 0) return { spans: [{ keyGroups: spec.keyGroups, layers: [layer] }], entries: 0 };
    const taken: Span[] = [];
    let entries = 0;
    let next = spec.keyGroups.start;
    for (const handle of restore.toSorted((a, b) => a.keyGroups.start - b.keyGroups.start)) {
      const wanted = overlap(handle.keyGroups, { start: next, end: spec.keyGroups.end });
      if (wanted === undefined) continue;
      next = wanted.end + 1;
      const { job, id } = snapshotOf(handle);
      const snapshot = await this.#catalog.readSnapshot(job, id);
      if (snapshot.shards !== spec.maxParallelism) throw otherParallelism(spec, snapshot.shards);
      taken.push(...clipSpans(snapshot.spans, wanted));
      const share = (wanted.end - wanted.start + 1) / (handle.keyGroups.end - handle.keyGroups.start + 1);
      entries += Math.ceil(snapshot.entries * share);
    }
    await this.#pin(table, spec, taken);
    return { spans: continueSpans(taken, layer), entries };
  }

  /** What is read of other tables must not be purged by them. */
  async #pin(table: string, { job, keyGroups }: TableSpec, spans: readonly Span[]): Promise<void> {
    const others = new Set(spans.flatMap(({ layers }) => layers.map((layer) => layer.table)));
    others.delete(table);
    for (const other of others) {
      await this.#catalog.putPin(other, `${table}@${keyGroups.start}-${keyGroups.end}`, job, spans);
    }
  }

  async #release(job: string, snapshot: string): Promise<void> {
    const released = await releaseSnapshot(this.#ring, this.#catalog, this.#options.settings, { job, snapshot });
    for (const table of this.#tables) if (tableIdOf(table.spec) === released) table.purgeSoon();
  }

  #schedulePurge(): Timer {
    return this.#options.clock.schedule(purgeIntervalMs, () => {
      this.#working = Promise.all([this.#working, this.#purge()]).finally(() => {
        if (this.#closing === undefined) this.#purgeTimer = this.#schedulePurge();
      });
    });
  }

  async #purge(): Promise<void> {
    const rowsMax = Math.ceil((this.#options.settings.purgeRowsPerSecond * purgeIntervalMs) / 1000);
    for (const table of this.#tables) {
      await this.#quietly('a table was not purged', async () => this.#purged.add(await table.purge(rowsMax)));
    }
  }

  #scheduleLeases(): Timer {
    return this.#options.clock.schedule(leaseIntervalMs, () => {
      const renewing = this.#quietly('leases were not renewed', async () => {
        const nowMs = this.#options.clock.monotonicMs();
        for (const table of this.#tables) await table.renewLease(nowMs - this.#leasedAtMs);
        this.#leasedAtMs = nowMs;
      });
      this.#working = Promise.all([this.#working, renewing]);
      void renewing.finally(() => {
        if (this.#closing === undefined) this.#leaseTimer = this.#scheduleLeases();
      });
    });
  }

  /** Work that is done again later when it fails. */
  async #quietly(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.telemetry.log.warn(what, { error: MillraceError.from(error).message });
    }
  }

  async #close(): Promise<void> {
    this.#purgeTimer.cancel();
    this.#leaseTimer.cancel();
    this.#unobserve();
    await Promise.all([...this.#tables].map((table) => table.close()));
    await this.#ring.close();
    await this.#working;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new MillraceError('state-table-closed', 'the state store is closed');
  }
}

function snapshotOf(handle: SnapshotHandle): { readonly job: string; readonly id: string } {
  const { job, snapshot: id } = handle.data;
  if (handle.store === 'cql' && typeof id === 'string' && typeof job === 'string') return { job, id };
  const text = `a snapshot of store ${handle.store} cannot be restored by store cql`;
  throw new MillraceError('bad-argument', text, { details: { operator: handle.operator } });
}

function otherParallelism(spec: TableSpec, was: number): MillraceError {
  const text = `the shards of ${spec.operator} are ${was}, one for each key group; maxParallelism is ${spec.maxParallelism} now. It cannot change while there is state: set maxParallelism to ${was}`;
  return new MillraceError('kv-shards-fixed', text, { details: { operator: spec.operator, shards: was } });
}
