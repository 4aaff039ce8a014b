import type { CachedFile, CachedReads, FileCache, FileThrough } from '@millrace/cache';
import type { Clock } from '@millrace/kernel';
import type { TraceEvent } from './trace.ts';

/** Reads of one file within so much time are one event, as a cache hears of them. */
const batchMs = 200;

/** Stands where a cache would, holds nothing, and writes down what happens to the files. */
export class TraceRecorder implements FileCache {
  readonly events: TraceEvent[] = [];
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #numbers = new Map<string, number>();
  readonly #reads = new Map<number, { bytes: number; reads: number }>();
  #batchStartMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  open(file: CachedFile): CachedReads {
    const number = this.#numberOf(file.id);
    return {
      read: () => {
        this.#flush(batchMs);
        const reads = this.#reads.get(number) ?? { bytes: file.sizeBytes, reads: 0 };
        reads.reads++;
        this.#reads.set(number, reads);
        return Promise.resolve(undefined);
      },
    };
  }

  create(): FileThrough {
    return {
      append: () => Promise.resolve(),
      seal: ({ id, sizeBytes: bytes }) => {
        this.#flush(0);
        this.events.push({ kind: 'written', atMs: this.#now(), file: this.#numberOf(id), bytes });
        return Promise.resolve();
      },
      abort: () => Promise.resolve(),
    };
  }

  forget(files: ReadonlyArray<{ readonly id: string }>): void {
    this.#flush(0);
    for (const { id } of files) {
      this.events.push({ kind: 'forgotten', atMs: this.#now(), file: this.#numberOf(id) });
    }
  }

  close(): void {
    this.#flush(0);
  }

  #flush(ageMs: number): void {
    const atMs = this.#now();
    if (atMs - this.#batchStartMs < ageMs) return;
    this.#batchStartMs = atMs;
    for (const [file, { bytes, reads }] of this.#reads) this.events.push({ kind: 'read', atMs, file, bytes, reads });
    this.#reads.clear();
  }

  #numberOf(id: string): number {
    const number = this.#numbers.get(id) ?? this.#numbers.size;
    this.#numbers.set(id, number);
    return number;
  }

  #now(): number {
    return Math.round(this.#clock.monotonicMs() - this.#startMs);
  }
}
