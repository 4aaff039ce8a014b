import { MillraceError, systemRandom } from '@millrace/kernel';
import { type BackgroundExecutor, defaultLsmLimits } from '@millrace/lsm';
import type { CheckpointContents, JobRecord } from '@millrace/proto/control';
import {
  type EntrySelection,
  type InspectedEntry,
  MemoryStateStore,
  type SnapshotHandle,
  type StateStore,
  type StoredState,
  TableInspector,
} from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { noTelemetry } from '@millrace/telemetry';
import { openJobStorage } from '@millrace/ufs';
import { type OperatorPart, partsOf } from './checkpoint-parts.ts';
import { parseKey } from './plain-json.ts';
import type { StoredCheckpoint, StoredJobs } from './stored-jobs.ts';

export interface CheckpointStateOptions {
  readonly jobs: StoredJobs;
  readonly record: JobRecord;
  readonly checkpoint: StoredCheckpoint;
  /** Blocks in memory. Default 32 MiB. */
  readonly cacheBytes?: number;
}

/** An operator with keyed state at a checkpoint. */
export interface StatefulOperator {
  readonly operator: string;
  readonly store: string;
  readonly subtasks: number;
  readonly bytesStored: number;
  /** Of the tables' files, so what was overwritten or has expired counts until it is merged away. */
  readonly entriesEstimate: number;
  readonly keyFormat: string;
  readonly states: readonly StoredState[];
}

/** The keyed state of one checkpoint, read by key or as a whole, without the job. Close it. */
export class CheckpointState {
  readonly #options: CheckpointStateOptions;
  readonly #contents: CheckpointContents;
  readonly #parts: readonly OperatorPart[];
  readonly #stores = new Map<string, StateStore>();

  private constructor(options: CheckpointStateOptions, contents: CheckpointContents) {
    this.#options = options;
    this.#contents = contents;
    this.#parts = partsOf(contents);
  }

  static async open(options: CheckpointStateOptions): Promise<CheckpointState> {
    return new CheckpointState(options, await options.jobs.contents(options.checkpoint));
  }

  /** Operators with keyed state, in the order of the job. */
  get operators(): readonly string[] {
    return [...new Set(this.#parts.flatMap(({ operator, table }) => (table === undefined ? [] : [operator])))];
  }

  async describe(operator: string): Promise<StatefulOperator> {
    const handles = this.#handles(operator);
    const table = await this.#openTable(operator, handles);
    try {
      const inspector = await TableInspector.open(table, this.#nowMs);
      const { bytesStored, entriesEstimate } = table.stats();
      return {
        operator,
        store: handles[0]?.store ?? '',
        subtasks: handles.length,
        bytesStored,
        entriesEstimate,
        keyFormat: inspector?.keyFormat ?? '',
        states: inspector?.states ?? [],
      };
    } finally {
      await table.close();
    }
  }

  /** Everything that is stored for a key, given as JSON or as plain text. */
  async *get(operator: string, key: string, selection: EntrySelection = {}): AsyncGenerator<InspectedEntry> {
    yield* this.#read(operator, (inspector) => inspector.entriesOf(inspector.keyBytes(parseKey(key)), selection));
  }

  /** Everything, by key group; lazy. */
  async *scan(operator: string, selection: EntrySelection = {}): AsyncGenerator<InspectedEntry> {
    yield* this.#read(operator, (inspector) => inspector.entries(selection));
  }

  async close(): Promise<void> {
    for (const store of this.#stores.values()) await store.close();
    this.#stores.clear();
  }

  get #nowMs(): number {
    return this.#options.jobs.clock.nowMs();
  }

  async *#read(
    operator: string,
    entries: (inspector: TableInspector) => AsyncIterable<InspectedEntry>,
  ): AsyncGenerator<InspectedEntry> {
    const table = await this.#openTable(operator, this.#handles(operator));
    try {
      const inspector = await TableInspector.open(table, this.#nowMs);
      if (inspector !== undefined) yield* entries(inspector);
    } finally {
      await table.close();
    }
  }

  #handles(operator: string): SnapshotHandle[] {
    const handles = this.#parts.flatMap((part) => (part.operator === operator ? (part.table ?? []) : []));
    if (handles.length > 0) return handles;
    const there = this.operators.length === 0 ? 'none has' : `those that have are ${this.operators.join(', ')}`;
    throw new MillraceError('bad-argument', `Operator "${operator}" has no keyed state in this checkpoint; ${there}.`);
  }

  async #openTable(operator: string, handles: readonly SnapshotHandle[]) {
    const { maxParallelism } = this.#contents;
    const keyGroups = { start: 0, end: maxParallelism - 1 };
    const spec = { job: this.#options.record.id, operator, subtask: 0, keyGroups, maxParallelism, generation: 0 };
    return await this.#store(handles[0]?.store ?? '').openTable(spec, handles);
  }

  #store(name: string): StateStore {
    const opened = this.#stores.get(name);
    if (opened !== undefined) return opened;
    const store = this.#openStore(name);
    this.#stores.set(name, store);
    return store;
  }

  #openStore(name: string): StateStore {
    const { jobs, record, cacheBytes = 32 << 20 } = this.#options;
    const { clock, dfs } = jobs;
    if (name === 'memory') return new MemoryStateStore(clock);
    if (name !== 'lsm') {
      throw new MillraceError(
        'bad-argument',
        `This state is kept by the store "${name}", whose snapshots can be read only through its state-service.`,
        { details: { store: name } },
      );
    }
    const telemetry = noTelemetry;
    const options = { dfs, jobId: record.id, generation: 0, clock, random: systemRandom, telemetry };
    const { files, holders, namespace } = openJobStorage(options);
    const executor = noExecutor;
    return openLsmStore({
      files,
      holders,
      namespace,
      executor,
      cacheBytes,
      limits: defaultLsmLimits,
      clock,
      telemetry,
    });
  }
}

/** A table that is only read builds and discards nothing. */
const noExecutor: BackgroundExecutor = {
  flush: () => Promise.reject(readOnly()),
  merge: () => Promise.reject(readOnly()),
  discard: () => undefined,
  close: () => Promise.resolve(),
};

function readOnly(): MillraceError {
  return new MillraceError('invariant-broken', 'a checkpoint that is read was to be written');
}
