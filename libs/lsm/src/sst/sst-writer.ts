/**
 * Writes one table front to back. Nothing is visible before `finish` seals the file, so a crash or an abort at any
 * point leaves no table behind.
 */
import { assert, type MaybePromise } from '@millrace/kernel';
import type { FileWriter } from '@millrace/ufs';
import { BlockBuilder } from './block-builder.ts';
import { expiryMsMax } from './block-layout.ts';
import { Bloom } from './bloom.ts';
import { encodeFooter } from './footer.ts';
import { FrameEncoder, frameTrailerBytes, writeFrameTrailer } from './frame.ts';
import { SstIndexBuilder } from './sst-index.ts';
import type { TableInfo, TableOptions } from './table-info.ts';

/** Bytes handed to the file at once. */
const chunkBytes = 512 * 1024;
/** Chunks of small tables start small. */
const firstChunkBytes = 16 * 1024;
const noBytes = Buffer.alloc(0);
const fileBytesLimit = 0xffff_ffff;

export class SstWriter {
  readonly #file: FileWriter;
  readonly #options: TableOptions;
  readonly #block: BlockBuilder;
  readonly #index = new SstIndexBuilder();
  readonly #encoder: FrameEncoder;
  #chunk = noBytes;
  #chunkEnd = 0;
  /** Bytes of the file that precede the chunk. */
  #written = 0;
  #hashes = new Int32Array(256);
  #entries = 0;
  #tombstones = 0;
  #expiring = 0;
  #expiresMinMs = 0;
  #expiresMaxMs = 0;
  #first: Uint8Array | undefined;
  #last: Uint8Array = new Uint8Array();

  constructor(file: FileWriter, options: TableOptions) {
    this.#file = file;
    this.#options = options;
    this.#block = new BlockBuilder(options.blockBytes);
    this.#encoder = new FrameEncoder(options.compress);
  }

  get entries(): number {
    return this.#entries;
  }

  /** Whether the table has reached its size and the next entry belongs to another. */
  get isFull(): boolean {
    return this.#written + this.#chunkEnd >= this.#options.tableBytesMax && this.#block.count === 0;
  }

  /** Keys in ascending order, each once. A promise means that the file takes no more for now. */
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
    const expiry = expiresAtMs > expiryMsMax ? 0 : Math.ceil(expiresAtMs);
    this.#block.add(bytes, keyStart, keyEnd, valueStart, valueEnd, isTombstone, expiry);
    if (this.#entries === this.#hashes.length) this.#hashes = doubled(this.#hashes);
    this.#hashes[this.#entries++] = hash;
    if (isTombstone) this.#tombstones++;
    if (expiry !== 0) this.#countExpiry(expiry);
    return this.#block.bytes >= this.#options.blockBytes ? this.#endBlock() : undefined;
  }

  /** Seals the file. The table must have an entry. */
  async finish(): Promise<TableInfo> {
    if (this.#block.count > 0) await this.#endBlock();
    assert(this.#first !== undefined, 'a table without entries');
    const filterOffset = this.#position;
    const filter = Bloom.forKeys(this.#entries, this.#options.bloomBitsPerKey);
    for (let i = 0; i < this.#entries; i++) filter.add(this.#hashes[i] as number);
    await this.#frame(Buffer.from(filter.words.buffer), 0);
    const indexOffset = this.#position;
    const index = this.#encoder.encode(this.#index.bytes());
    await this.#frame(index.stored, index.codec);
    const footer = encodeFooter({
      filterOffset,
      filterLength: indexOffset - filterOffset,
      indexOffset,
      indexLength: this.#position - indexOffset,
      blocks: this.#index.blocks,
      entries: this.#entries,
      tombstones: this.#tombstones,
      expiring: this.#expiring,
    });
    const tailBytes = this.#position + footer.length - filterOffset;
    await this.#append(footer);
    await this.#flushChunk();
    const file = await this.#file.seal();
    return {
      file,
      tailBytes,
      entries: this.#entries,
      tombstones: this.#tombstones,
      expiring: this.#expiring,
      expiresMinMs: this.#expiresMinMs,
      expiresMaxMs: this.#expiresMaxMs,
      first: this.#first,
      last: this.#last,
    };
  }

  /** Gives up; leaves nothing behind. */
  abort(): Promise<void> {
    return this.#file.abort();
  }

  get #position(): number {
    return this.#written + this.#chunkEnd;
  }

  #endBlock(): MaybePromise<void> {
    const first = this.#block.firstKey();
    this.#last = this.#block.lastKey();
    this.#first ??= first;
    const offset = this.#position;
    const { stored, codec } = this.#encoder.encode(this.#block.take());
    this.#index.add(offset, stored.length + frameTrailerBytes, first, this.#last);
    return this.#frame(stored, codec);
  }

  #frame(stored: Buffer, codec: number): MaybePromise<void> {
    const bytes = stored.length + frameTrailerBytes;
    assert(this.#position + bytes <= fileBytesLimit, 'a table beyond 4 GiB');
    if (this.#hasRoom(bytes)) {
      this.#appendFrame(stored, codec);
      return undefined;
    }
    return this.#flushChunk().then(() => {
      if (!this.#hasRoom(bytes)) this.#chunk = Buffer.allocUnsafeSlow(bytes);
      this.#appendFrame(stored, codec);
    });
  }

  /** Grows the chunk up to its size if need be; false when its bytes have to go first. */
  #hasRoom(bytes: number): boolean {
    const needed = this.#chunkEnd + bytes;
    if (needed <= this.#chunk.length) return true;
    if (needed > chunkBytes) return false;
    const grown = Buffer.allocUnsafeSlow(
      Math.min(chunkBytes, Math.max(firstChunkBytes, this.#chunk.length * 4, needed)),
    );
    this.#chunk.copy(grown, 0, 0, this.#chunkEnd);
    this.#chunk = grown;
    return true;
  }

  #appendFrame(stored: Buffer, codec: number): void {
    const start = this.#chunkEnd;
    stored.copy(this.#chunk, start);
    this.#chunkEnd = writeFrameTrailer(this.#chunk, start, start + stored.length, codec);
  }

  async #append(bytes: Buffer): Promise<void> {
    if (!this.#hasRoom(bytes.length)) {
      await this.#flushChunk();
      this.#hasRoom(bytes.length);
    }
    bytes.copy(this.#chunk, this.#chunkEnd);
    this.#chunkEnd += bytes.length;
  }

  /** Hands the chunk's bytes over; the chunk serves again, unless a giant had to have one of its own. */
  async #flushChunk(): Promise<void> {
    if (this.#chunkEnd === 0) return;
    await this.#file.append(this.#chunk.subarray(0, this.#chunkEnd));
    this.#written += this.#chunkEnd;
    this.#chunkEnd = 0;
    if (this.#chunk.length > chunkBytes) this.#chunk = noBytes;
  }

  #countExpiry(expiresAtMs: number): void {
    if (this.#expiring === 0 || expiresAtMs < this.#expiresMinMs) this.#expiresMinMs = expiresAtMs;
    if (expiresAtMs > this.#expiresMaxMs) this.#expiresMaxMs = expiresAtMs;
    this.#expiring++;
  }
}

function doubled(values: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(values.length * 2);
  grown.set(values);
  return grown;
}
