import { compareRanges, type MaybePromise } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { KeyRange } from '../manifest/key-range.ts';
import type { Cursor } from '../merge/cursor.ts';
import type { Block } from './block.ts';
import { type EntryParts, readEntry } from './block-layout.ts';
import type { ReadBuffer } from './read-buffer.ts';
import type { SstReader } from './sst-reader.ts';

export interface ReadAhead {
  /** Bytes of the first read; each next one doubles up to the limit. */
  readonly firstBytes: number;
  readonly limitBytes: number;
  /** Blocks that the cache is asked to keep; a long scan shall not push out what point reads use. */
  readonly keptBlocks: number;
}

export const scanReadAhead: ReadAhead = { firstBytes: 1, limitBytes: 256 * 1024, keptBlocks: 8 };
export const compactionReadAhead: ReadAhead = { firstBytes: 256 * 1024, limitBytes: 1024 * 1024, keptBlocks: 0 };

export interface SstCursorOptions {
  readonly range: KeyRange;
  readonly readAhead: ReadAhead;
  /** For a reader that is this cursor's alone: blocks are valid until the cursor needs the next ones. */
  readonly buffer?: ReadBuffer | undefined;
  readonly parent?: TraceContext | undefined;
}

const nothing = new Uint8Array();

/** The entries of one table within a range, in order. */
export class SstCursor implements Cursor, EntryParts {
  valid = false;
  bytes: Uint8Array = nothing;
  keyStart = 0;
  keyEnd = 0;
  valueStart = 0;
  valueEnd = 0;
  isTombstone = false;
  expiresAtMs = 0;
  readonly #reader: SstReader;
  readonly #options: SstCursorOptions;
  #readAheadBytes: number;
  #kept = 0;
  #block: Block | undefined;
  #blockNumber = 0;
  #index = 0;
  /** Blocks read and not yet visited, from `#blockNumber + 1` on; the next one is the last. */
  #ahead: Block[] = [];

  constructor(reader: SstReader, options: SstCursorOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#readAheadBytes = options.readAhead.firstBytes;
  }

  open(): MaybePromise<void> {
    if (!this.#reader.isOpen) return this.#reader.open(this.#options.parent).then(() => this.#seek());
    return this.#seek();
  }

  next(): MaybePromise<void> {
    this.#index++;
    if (this.#index < (this.#block as Block).count) {
      this.#read();
      return undefined;
    }
    return this.#enter(this.#blockNumber + 1, 0);
  }

  #seek(): MaybePromise<void> {
    const { start } = this.#options.range;
    return this.#enter(this.#reader.index.lowerBound(start, 0, start.length), -1);
  }

  /** Goes to entry `index` of the block, or with -1 to the first one in range. */
  #enter(number: number, index: number): MaybePromise<void> {
    if (number >= this.#reader.index.blocks) {
      this.valid = false;
      this.#block = undefined;
      return undefined;
    }
    const block = this.#ahead.pop() ?? this.#reader.cached(number);
    if (block !== undefined) return this.#at(block, number, index);
    return this.#fetch(number).then((fetched) => this.#at(fetched, number, index));
  }

  #at(block: Block, number: number, index: number): void {
    this.#block = block;
    this.#blockNumber = number;
    this.#index = index >= 0 ? index : block.lowerBound(this.#options.range.start);
    this.bytes = block.bytes;
    this.#read();
  }

  #read(): void {
    const block = this.#block as Block;
    readEntry(block.bytes, block.offsets[this.#index] as number, this);
    const end = this.#options.range.end;
    this.valid = end === undefined || compareRanges(this.bytes, this.keyStart, this.keyEnd, end, 0, end.length) < 0;
  }

  /** Reads from `number` on: as many blocks in a row as the read-ahead allows and the cache has not. */
  async #fetch(number: number): Promise<Block> {
    const { index } = this.#reader;
    const start = index.offsets[number] as number;
    let end = number + 1;
    while (
      end < index.blocks &&
      (index.offsets[end + 1] as number) - start <= this.#readAheadBytes &&
      this.#reader.cached(end) === undefined
    ) {
      end++;
    }
    const { readAhead, buffer, parent } = this.#options;
    this.#readAheadBytes = Math.min(
      Math.max(this.#readAheadBytes, (index.offsets[end] as number) - start) * 2,
      readAhead.limitBytes,
    );
    const keep = this.#kept < readAhead.keptBlocks;
    this.#kept += end - number;
    const blocks =
      buffer === undefined
        ? await this.#reader.read(number, end, keep, parent)
        : await this.#reader.readOnce(number, end, buffer, parent);
    this.#ahead = blocks.reverse();
    return this.#ahead.pop() as Block;
  }
}
