import { isKind, type MaybePromise, MillraceError } from '@millrace/kernel';
import { filesOf, type LsmTable, manifestToJson } from '@millrace/lsm';
import type {
  Claim,
  PackedKeys,
  PackedValues,
  Peek,
  ScanPage,
  ScanRange,
  SnapshotHandle,
  StateTable,
  TableSpec,
  TableStats,
  ValueView,
  WriteBatch,
} from '@millrace/state';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { HolderStore, JobNamespace } from '@millrace/ufs';

export interface LsmStateTableOptions {
  readonly spec: TableSpec;
  readonly table: LsmTable;
  readonly holders: HolderStore;
  readonly namespace: JobNamespace;
  readonly store: string;
  readonly telemetry: Telemetry;
  readonly claim: Claim;
  readonly onClose: () => void;
}

/** A state table on an {@link LsmTable}; adds what makes it a state table: fence, holder objects, handles. */
export class LsmStateTable implements StateTable {
  readonly spec: TableSpec;
  readonly #options: LsmStateTableOptions;
  readonly #table: LsmTable;
  readonly #claim: Claim;
  /** The first failure of kind `fenced`: from then on every call fails with it. */
  #fenced: MillraceError | undefined;
  #isClosed = false;

  constructor(options: LsmStateTableOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#table = options.table;
    this.#claim = options.claim;
  }

  peek(keyBytes: Uint8Array, start: number, end: number, into: ValueView): Peek {
    this.#check();
    return this.#table.get(keyBytes, start, end, into);
  }

  multiGet(keys: PackedKeys, parent?: TraceContext): MaybePromise<PackedValues> {
    this.#check();
    return this.#table.multiGet(keys, parent);
  }

  write(batch: WriteBatch): MaybePromise<void> {
    this.#check();
    const bytes = batch.arena.bytes;
    for (let i = 0; i < batch.count; i++) {
      const keyStart = batch.keyStart(i);
      const valueStart = batch.valueStart(i);
      if (batch.isDelete(i)) this.#table.delete(bytes, keyStart, valueStart);
      else {
        this.#table.put(bytes, keyStart, valueStart, valueStart, batch.valueEnd(i), batch.expiresAtMs(i));
      }
    }
    return this.#table.admit();
  }

  scan({ start, end, pageEntriesMax }: ScanRange, parent?: TraceContext): AsyncIterable<ScanPage> {
    this.#check();
    return this.#table.scan({ start, end, pageEntriesMax, parent });
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    this.#check();
    const attributes = { 'millrace.checkpoint': checkpoint, 'millrace.operator': this.spec.operator };
    return this.#options.telemetry.tracer.span('state.snapshot', { parent, attributes }, (span) =>
      this.#snapshot(checkpoint, span.context).catch((error: unknown) => {
        if (isKind(error, 'fenced')) this.#fenced ??= error;
        throw error;
      }),
    );
  }

  stats(): TableStats {
    const stats = this.#table.stats();
    return {
      entriesEstimate: stats.entriesEstimate,
      bytesInMemory: stats.memtableBytes + stats.indexBytes,
      bytesStored: stats.bytesStored,
    };
  }

  close(): Promise<void> {
    if (!this.#isClosed) this.#options.onClose();
    this.#isClosed = true;
    return this.#table.close();
  }

  /**
   * Files first, then the one object that names them: a crash in between leaves files that nothing names, for the
   * sweep. The holder is written once and never changes.
   */
  async #snapshot(checkpoint: number, parent: TraceContext | undefined): Promise<SnapshotHandle> {
    const { spec } = this;
    const { holders, namespace, store } = this.#options;
    const { manifest, bytesPut, bytesLinked } = await this.#table.snapshot(parent);
    const path = namespace.snapshotPath({ ...spec, checkpoint });
    const holder = { files: filesOf(manifest), value: manifestToJson(manifest), generation: spec.generation };
    this.#check();
    await holders.put(path, holder, parent);
    return {
      store,
      operator: spec.operator,
      keyGroups: spec.keyGroups,
      data: { holder: path },
      holders: [path],
      bytesPut,
      bytesLinked,
    };
  }

  #check(): void {
    if (this.#isClosed) throw new MillraceError('state-table-closed', `the table of ${this.spec.operator} is closed`);
    if (this.#fenced !== undefined) throw this.#fenced;
    this.#claim.check();
  }
}
