import type { MaybePromise } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileStore } from '@millrace/ufs';
import { SstWriter } from './sst-writer.ts';
import type { TableInfo, TableOptions } from './table-info.ts';

/** Writes ascending entries into as many tables as their size asks for: one sorted run. */
export class TableSink {
  readonly #files: FileStore;
  readonly #options: TableOptions;
  readonly #parent: TraceContext | undefined;
  readonly #tables: TableInfo[] = [];
  #writer: SstWriter | undefined;

  constructor(files: FileStore, options: TableOptions, parent: TraceContext | undefined) {
    this.#files = files;
    this.#options = options;
    this.#parent = parent;
  }

  /** The bytes may be reused once the result has settled. */
  add(
    hash: number,
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    valueStart: number,
    valueEnd: number,
    isTombstone: boolean,
    expiresAtMs: number,
  ): MaybePromise<void> {
    const writer = this.#writer;
    if (writer !== undefined && !writer.isFull) {
      return writer.add(hash, bytes, keyStart, keyEnd, valueStart, valueEnd, isTombstone, expiresAtMs);
    }
    return this.#roll().then((next) =>
      next.add(hash, bytes, keyStart, keyEnd, valueStart, valueEnd, isTombstone, expiresAtMs),
    );
  }

  async finish(): Promise<readonly TableInfo[]> {
    await this.#finishTable();
    return this.#tables;
  }

  /** Leaves no file behind. */
  async abort(): Promise<void> {
    this.#files.discard(this.#tables.map((table) => table.file));
    await this.#writer?.abort();
  }

  async #roll(): Promise<SstWriter> {
    await this.#finishTable();
    this.#writer = new SstWriter(await this.#files.create(this.#parent), this.#options);
    return this.#writer;
  }

  async #finishTable(): Promise<void> {
    if (this.#writer === undefined) return;
    this.#tables.push(await this.#writer.finish());
    this.#writer = undefined;
  }
}
