/**
 * The embedded state store: log-structured tables over the unified file system. Its durable home is the job's
 * namespace; what it keeps in memory and in its background thread can be lost at any time and costs the work since
 * the last checkpoint.
 */
import { type Clock, MillraceError } from '@millrace/kernel';
import { type BackgroundExecutor, BlockCache, type LsmLimits, type LsmStats, LsmTable } from '@millrace/lsm';
import { Generations, type SnapshotHandle, type StateStore, type StateTable, type TableSpec } from '@millrace/state';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { FileStore, HolderStore, JobNamespace } from '@millrace/ufs';
import { LsmStateTable } from './lsm-state-table.ts';
import { observe } from './observe.ts';
import { restoreManifest } from './restore.ts';

export interface LsmStoreOptions {
  /** The job's files, for reads. */
  readonly files: FileStore;
  readonly holders: HolderStore;
  readonly namespace: JobNamespace;
  /** Makes and discards files; closed with the store. */
  readonly executor: BackgroundExecutor;
  /** Blocks, filters and indexes of all tables together. */
  readonly cacheBytes: number;
  /** Bounds of each table. */
  readonly limits: LsmLimits;
  /** Shared by the stores of one process that serve generations of the same job; default: this store's own. */
  readonly generations?: Generations;
  /** How long `close` waits for files under way before it ends the executor; default one second. */
  readonly closeTimeoutMs?: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const closeTimeoutMsDefault = 1000;
const storeName = 'lsm';

export function openLsmStore(options: LsmStoreOptions): StateStore {
  return new LsmStore(options);
}

class LsmStore implements StateStore {
  readonly name = storeName;
  readonly #options: LsmStoreOptions;
  readonly #cache: BlockCache;
  readonly #generations: Generations;
  readonly #tables = new Map<StateTable, LsmTable>();
  readonly #unobserve: () => void;
  #closing: Promise<void> | undefined;

  constructor(options: LsmStoreOptions) {
    this.#options = options;
    this.#generations = options.generations ?? new Generations();
    this.#cache = new BlockCache({ bytesMax: options.cacheBytes });
    this.#unobserve = observe(options.telemetry.metrics, { cache: this.#cache, stats: () => this.#stats() });
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    this.#checkOpen();
    const claim = this.#generations.claim(spec);
    const { files, holders, executor, limits, clock, telemetry } = this.#options;
    const attributes = { 'millrace.operator': spec.operator, 'millrace.handles': restore.length };
    const manifest = await telemetry.tracer.span('state.restore', { parent, attributes }, (span) =>
      restoreManifest(spec, restore, { holders, store: storeName, parent: span.context }),
    );
    this.#checkOpen();
    claim.check();
    const table = new LsmTable({ files, executor, cache: this.#cache, clock, telemetry, limits, manifest });
    const state = new LsmStateTable({
      spec,
      table,
      holders,
      namespace: this.#options.namespace,
      store: storeName,
      telemetry,
      claim,
      onClose: () => this.#tables.delete(state),
    });
    this.#tables.set(state, table);
    return state;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Tables first, so that they discard what nobody needs; one that waits for files without end is cut off. */
  async #close(): Promise<void> {
    const { clock, executor, closeTimeoutMs = closeTimeoutMsDefault } = this.#options;
    this.#unobserve();
    const tables = Promise.all([...this.#tables.keys()].map((table) => table.close()));
    const timeout = Promise.withResolvers<void>();
    const timer = clock.schedule(closeTimeoutMs, timeout.resolve);
    await Promise.race([tables, timeout.promise]);
    timer.cancel();
    await executor.close();
    await tables;
  }

  #stats(): LsmStats[] {
    return [...this.#tables.values()].map((table) => table.stats());
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new MillraceError('state-table-closed', 'the state store is closed');
  }
}
