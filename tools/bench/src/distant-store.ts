import { type Clock, MillraceError, type Timer } from '@millrace/kernel';
import { type PackedValues, packValues, type StateStore, type StateTable, type TableSpec } from '@millrace/state';

interface Answer {
  readonly count: number;
  readonly askedMs: number;
  readonly dueMs: number;
  readonly resolve: (values: PackedValues) => void;
}

/** Closer than this no timer of the machine is exact enough: the event loop is asked again and again. */
const exactMs = 1.5;

/**
 * A store across a network: every read is answered `latencyMs` after it was asked (0: by a promise that is resolved at
 * once), with nothing, and what is written is forgotten. Its cost is latency alone.
 */
export class DistantStore implements StateStore {
  readonly name = 'distant';
  /** Keys read, and how long their answers took together. */
  reads = 0;
  waitedMs = 0;
  readonly #latencyMs: number;
  readonly #clock: Clock;
  readonly #asked: Answer[] = [];
  #armed = false;

  constructor(latencyMs: number, clock: Clock) {
    this.#latencyMs = latencyMs;
    this.#clock = clock;
  }

  openTable(spec: TableSpec): Promise<StateTable> {
    return Promise.resolve({
      spec,
      peek: () => 'unknown' as const,
      multiGet: ({ count }: { readonly count: number }) => this.#answer(count),
      write: () => undefined,
      scan: () => {
        throw new MillraceError('bad-argument', 'the distant store has no scan');
      },
      snapshot: () => Promise.reject(new MillraceError('bad-argument', 'the distant store has no snapshot')),
      stats: () => ({ entriesEstimate: 0, bytesInMemory: 0, bytesStored: 0 }),
      close: () => Promise.resolve(),
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #answer(count: number): Promise<PackedValues> {
    if (this.#latencyMs === 0) {
      this.reads += count;
      return Promise.resolve(nothing(count));
    }
    const askedMs = this.#clock.monotonicMs();
    return new Promise((resolve) => {
      this.#asked.push({ count, askedMs, dueMs: askedMs + this.#latencyMs, resolve });
      this.#arm();
    });
  }

  #arm(): void {
    const next = this.#asked[0];
    if (this.#armed || next === undefined) return;
    this.#armed = true;
    const leftMs = next.dueMs - this.#clock.monotonicMs();
    const ring = (): void => this.#ring();
    if (leftMs > exactMs) void (this.#clock.schedule(Math.floor(leftMs - 1), ring) satisfies Timer);
    else setImmediate(ring);
  }

  #ring(): void {
    this.#armed = false;
    const nowMs = this.#clock.monotonicMs();
    while ((this.#asked[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs) {
      const { count, askedMs, resolve } = this.#asked.shift() as Answer;
      this.reads += count;
      this.waitedMs += count * (nowMs - askedMs);
      resolve(nothing(count));
    }
    this.#arm();
  }
}

function nothing(count: number): PackedValues {
  return packValues(Array.from({ length: count }, () => undefined));
}
