import type { TraceContext } from '@millrace/telemetry';
import type { ValueRef } from '../answers.ts';
import {
  keyHash,
  Memtable,
  type MemtableAnswer,
  type MemtableMemory,
  type MemtableSize,
  type MemtableView,
} from '../memtable/memtable.ts';
import type { KeySlice } from './version.ts';

/** `parent` is who asked for it; undefined when it was full. */
type OnFreeze = (frozen: Memtable, parent: TraceContext | undefined) => void;

/** The active memtable and the frozen ones before it, oldest first. */
export class WriteBuffer {
  readonly #bytesMax: number;
  readonly #onFreeze: OnFreeze;
  #active: Memtable;
  readonly #frozen: Memtable[] = [];
  /** Memory of memtables that were flushed, as much as a burst of writes needs. */
  readonly #spare: MemtableMemory[] = [];
  readonly #memtablesMax: number;

  /** `memtablesMax` bounds the memory kept for later: with it, no more than so many memtables are held. */
  constructor(bytesMax: number, memtablesMax: number, onFreeze: OnFreeze) {
    this.#bytesMax = bytesMax;
    this.#memtablesMax = memtablesMax;
    this.#onFreeze = onFreeze;
    this.#active = new Memtable({ bytesMax });
  }

  get frozen(): number {
    return this.#frozen.length;
  }

  /** Entries in memory, versions counted singly. */
  get entries(): number {
    return this.#frozen.reduce((sum, memtable) => sum + memtable.count, this.#active.count);
  }

  /** Memory held, that for later included. */
  get bytes(): number {
    const spare = this.#spare.reduce((sum, { arena, words }) => sum + arena.byteLength + words.byteLength, 0);
    return this.#frozen.reduce((sum, memtable) => sum + memtable.bytes, this.#active.bytes + spare);
  }

  put(
    bytes: Uint8Array,
    keyStart: number,
    keyEnd: number,
    valueStart: number,
    valueEnd: number,
    expiresAtMs: number,
  ): void {
    const hash = keyHash(bytes, keyStart, keyEnd);
    while (!this.#active.put(hash, bytes, keyStart, keyEnd, valueStart, valueEnd, expiresAtMs)) this.freeze();
  }

  delete(bytes: Uint8Array, keyStart: number, keyEnd: number): void {
    const hash = keyHash(bytes, keyStart, keyEnd);
    while (!this.#active.delete(hash, bytes, keyStart, keyEnd)) this.freeze();
  }

  get(key: KeySlice, nowMs: number, into: ValueRef): MemtableAnswer {
    let answer = this.#active.get(key.hash, key.bytes, key.start, key.end, nowMs, into);
    for (let i = this.#frozen.length - 1; i >= 0 && answer === 'none'; i--) {
      answer = (this.#frozen[i] as Memtable).get(key.hash, key.bytes, key.start, key.end, nowMs, into);
    }
    return answer;
  }

  /** Freezes what was written since the last time, if anything was. */
  freeze(parent?: TraceContext): void {
    const full = this.#active;
    if (full.count === 0) return;
    const size = this.#sizeAfter(full.size);
    this.#active = new Memtable({ bytesMax: this.#bytesMax, size, reuse: this.#spare.pop() });
    this.#frozen.push(full);
    this.#onFreeze(full, parent);
  }

  /** Lets go of the oldest frozen memtable, which a table has replaced. */
  dropOldest(): void {
    const memory = this.#frozen.shift()?.recycle();
    const held = 1 + this.#frozen.length + this.#spare.length;
    if (memory !== undefined && held < this.#memtablesMax) this.#spare.push(memory);
  }

  /** Of every memtable with entries, newest first. */
  views(): MemtableView[] {
    return [...this.#frozen, this.#active]
      .filter((memtable) => memtable.count > 0)
      .map((memtable) => memtable.view())
      .reverse();
  }

  /** What the last one needed, but for the exceptional. */
  #sizeAfter({ arenaBytes, entries }: MemtableSize): MemtableSize {
    const entryShare = Math.max(128, 2 ** Math.floor(Math.log2(this.#bytesMax / 256)));
    return { arenaBytes: Math.min(arenaBytes, this.#bytesMax >>> 1), entries: Math.min(entries, entryShare) };
  }
}
