/**
 * An open table: filter and index in memory, blocks in slots whose bytes the block cache accounts for. Positional
 * reads only; lookups answer at once when the block is here and say which block they miss when it is not.
 */

import type { BlockCache, BlockOwner } from '@millrace/cache';
import { assert } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileReader, FileStore } from '@millrace/ufs';
import type { ValueRef } from '../answers.ts';
import { corrupt } from '../errors.ts';
import { Block, wordsOf } from './block.ts';
import { type EntryParts, readEntry } from './block-layout.ts';
import { Bloom } from './bloom.ts';
import { decodeFooter } from './footer.ts';
import { decodeFrame } from './frame.ts';
import type { ReadBuffer } from './read-buffer.ts';
import { SstIndex } from './sst-index.ts';
import type { TableInfo } from './table-info.ts';

interface Contents {
  readonly filter: Bloom;
  readonly index: SstIndex;
  readonly owner: BlockSlots;
  readonly memoryBytes: number;
}

interface BlockRead {
  readonly keep: boolean;
  readonly parent: TraceContext | undefined;
  readonly buffer?: ReadBuffer;
}

export class SstReader {
  readonly info: TableInfo;
  readonly #cache: BlockCache;
  readonly #reader: FileReader;
  #contents: Contents | undefined;
  #opening: Promise<void> | undefined;
  #closed = false;
  readonly #arriving = new Map<number, Promise<Block>>();
  readonly #parts: EntryParts = {
    keyStart: 0,
    keyEnd: 0,
    valueStart: 0,
    valueEnd: 0,
    isTombstone: false,
    expiresAtMs: 0,
  };

  constructor(info: TableInfo, files: FileStore, cache: BlockCache) {
    this.info = info;
    this.#cache = cache;
    this.#reader = files.open(info.file);
  }

  get isOpen(): boolean {
    return this.#contents !== undefined;
  }

  /** Filter and index, once the table is open. */
  get memoryBytes(): number {
    return this.#contents?.memoryBytes ?? 0;
  }

  get index(): SstIndex {
    assert(this.#contents !== undefined, 'the table is not open');
    return this.#contents.index;
  }

  /** Reads filter and index; once, however many ask. A failed attempt may be repeated. */
  open(parent?: TraceContext): Promise<void> {
    if (this.#contents !== undefined) return Promise.resolve();
    this.#opening ??= this.#load(parent).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** The block that alone may have the key; -1 when none may. The table is open. */
  blockOf(hash: number, key: Uint8Array, start: number, end: number): number {
    const contents = this.#contents as Contents;
    if (!contents.filter.mayHave(hash)) return -1;
    return contents.index.blockOf(key, start, end);
  }

  cached(block: number): Block | undefined {
    const owner = (this.#contents as Contents).owner;
    const found = owner.blocks[block];
    if (found === undefined) {
      this.#cache.misses++;
      return undefined;
    }
    this.#cache.hits++;
    owner.visited[block] = 1;
    return found;
  }

  /** What the key has in `block`. */
  lookUp(
    block: Block,
    hash: number,
    key: Uint8Array,
    start: number,
    end: number,
    nowMs: number,
    into: ValueRef,
  ): 'none' | 'found' | 'hidden' {
    const at = block.find(hash, key, start, end);
    if (at < 0) return 'none';
    const parts = this.#parts;
    readEntry(block.bytes, at, parts);
    if (parts.isTombstone || (parts.expiresAtMs !== 0 && parts.expiresAtMs <= nowMs)) return 'hidden';
    into.bytes = block.bytes;
    into.start = parts.valueStart;
    into.end = parts.valueEnd;
    return 'found';
  }

  /** The block, when a read that somebody else began will bring it. */
  arriving(block: number): Promise<Block> | undefined {
    return this.#arriving.get(block);
  }

  /** The blocks `[first, end)` by one read, which the cache keeps as far as it has room when `keep` is set. */
  async read(first: number, end: number, keep: boolean, parent?: TraceContext): Promise<Block[]> {
    const reading = this.#read(first, end, { keep, parent });
    for (let i = first; i < end; i++) {
      const block = reading.then((blocks) => blocks[i - first] as Block);
      // Whoever waits for it sees the rejection; that nobody may wait is no fault.
      block.catch(() => undefined);
      this.#arriving.set(i, block);
    }
    try {
      return await reading;
    } finally {
      for (let i = first; i < end; i++) this.#arriving.delete(i);
    }
  }

  /** The blocks `[first, end)` for who reads the table from end to end: nobody else gets them, and they end with the next read into `buffer`. */
  readOnce(first: number, end: number, buffer: ReadBuffer, parent?: TraceContext): Promise<Block[]> {
    return this.#read(first, end, { keep: false, parent, buffer });
  }

  async #read(first: number, end: number, { keep, parent, buffer }: BlockRead): Promise<Block[]> {
    const { index, owner } = this.#contents as Contents;
    const offset = index.offsets[first] as number;
    const bytes = await this.#bytes(offset, (index.offsets[end] as number) - offset, parent, buffer);
    const blocks: Block[] = [];
    for (let i = first; i < end; i++) {
      const start = (index.offsets[i] as number) - offset;
      const frame = bytes.subarray(start, (index.offsets[i + 1] as number) - offset);
      const block = new Block(decodeFrame(frame, keep, this.info.file.id, `block ${i}`), this.info.file.id);
      blocks.push(block);
      if (keep && !this.#closed && owner.blocks[i] === undefined && this.#cache.admit(owner, i, block.memoryBytes)) {
        owner.blocks[i] = block;
      }
    }
    return blocks;
  }

  /** Gives memory back. Reads under way finish. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#contents === undefined) return;
    this.#cache.release(this.#contents.owner);
    this.#contents.owner.blocks.fill(undefined);
    this.#cache.unreserve(this.#contents.memoryBytes);
  }

  async #load(parent: TraceContext | undefined): Promise<void> {
    const { file, tailBytes } = this.info;
    const start = file.sizeBytes - tailBytes;
    const tail = await this.#bytes(start, tailBytes, parent);
    const footer = decodeFooter(tail, file.id);
    const part = (offset: number, length: number, what: string): Uint8Array => {
      if (offset < start || offset + length > file.sizeBytes)
        throw corrupt(file.id, `${what} lies outside of the file`);
      return decodeFrame(tail.subarray(offset - start, offset - start + length), true, file.id, what);
    };
    const filterWords = part(footer.filterOffset, footer.filterLength, 'the filter');
    const filter = new Bloom(wordsOf(filterWords, 0, filterWords.length / 4));
    const index = new SstIndex(part(footer.indexOffset, footer.indexLength, 'the index'), footer.blocks);
    const memoryBytes = filterWords.length + index.memoryBytes + index.blocks * slotBytes;
    this.#contents = { filter, index, owner: new BlockSlots(index.blocks), memoryBytes };
    if (!this.#closed) this.#cache.reserve(memoryBytes);
  }

  async #bytes(
    offset: number,
    length: number,
    parent: TraceContext | undefined,
    buffer?: ReadBuffer,
  ): Promise<Uint8Array> {
    const lent = buffer?.lend(length);
    const bytes = await this.#reader.read(offset, length, parent, lent).catch((error: unknown) => {
      buffer?.lost();
      throw error;
    });
    buffer?.returned(lent, bytes);
    if (bytes.length !== length) throw corrupt(this.info.file.id, `${length} bytes at ${offset} are ${bytes.length}`);
    return bytes;
  }
}

/** Position, mark and reference of one cached block. */
const slotBytes = 13;

class BlockSlots implements BlockOwner {
  readonly visited: Uint8Array;
  readonly positions: Int32Array;
  readonly blocks: Array<Block | undefined>;

  constructor(blocks: number) {
    this.visited = new Uint8Array(blocks);
    this.positions = new Int32Array(blocks).fill(-1);
    this.blocks = Array.from({ length: blocks });
  }

  evict(slot: number): void {
    this.blocks[slot] = undefined;
  }
}
