import type { Split } from '../api/source.ts';
import type { WatermarkStrategy, WatermarkTracker } from '../api/watermarks.ts';
import { combinedWatermark, type TimedInput } from '../runtime/combined-watermark.ts';

/** Event time of one split. */
class SplitClock<T> implements TimedInput {
  readonly id: string | undefined;
  readonly tracker: WatermarkTracker<T>;
  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  ended = false;
  /** Has had a record since it was looked at last. */
  touched = false;
  paused = false;
  /** The source's reading time when it last had a record, or could not have one. */
  seenMs: number;

  constructor(id: string | undefined, tracker: WatermarkTracker<T>, readingMs: number) {
    this.id = id;
    this.tracker = tracker;
    this.seenMs = readingMs;
  }

  rise(watermarkMs: number | undefined): boolean {
    if (watermarkMs === undefined || !(watermarkMs > this.watermarkMs)) return false;
    this.watermarkMs = watermarkMs;
    return true;
  }
}

/**
 * Event time of a source's splits: each has a watermark, may be idle, and may be too far ahead of the others to be read. A
 * source whose reader does not tell its splits apart has one. Idleness is measured in reading time: the caller's clock
 * that stands still while the source is held up.
 */
export class SplitTimes<T> {
  readonly #strategy: WatermarkStrategy<T>;
  readonly #clocks = new Map<string | undefined, SplitClock<T>>();
  #last: SplitClock<T> | undefined;
  /** The reader tells its splits apart, so that there may be none. */
  #toldApart = false;
  #paused: ReadonlySet<string> = new Set();

  /** `splits`: those that the reader tells apart; undefined when it does not. */
  constructor(strategy: WatermarkStrategy<T>, splits: readonly Split[] | undefined) {
    this.#strategy = strategy;
    if (splits === undefined) this.#add(undefined, 0);
    else this.sync(splits, 0);
  }

  /** True when the record itself has moved its split's watermark. */
  record(split: Split | undefined, record: T, timestampMs: number, readingMs: number): boolean {
    const id = split?.id;
    let clock = this.#last;
    if (clock === undefined || clock.id !== id) {
      clock = this.#clocks.get(id) ?? this.#add(id, readingMs);
      this.#last = clock;
    }
    clock.touched = true;
    clock.idle = false;
    return clock.rise(clock.tracker.onRecord(record, timestampMs));
  }

  /** The splits that there are: new ones hold time back until they have a record, others are done. */
  sync(splits: readonly Split[], readingMs: number): void {
    this.#toldApart = true;
    const ids = new Set<string | undefined>();
    for (const { id } of splits) {
      ids.add(id);
      if (!this.#clocks.has(id)) this.#add(id, readingMs);
    }
    for (const [id, clock] of this.#clocks) if (!ids.has(id)) clock.ended = true;
  }

  /** Asks every split for its watermark, and which are idle. */
  look(readingMs: number): void {
    const { idleMs } = this.#strategy;
    for (const clock of this.#clocks.values()) {
      if (clock.ended) continue;
      clock.rise(clock.tracker.onInterval?.());
      if (clock.touched || clock.paused) {
        clock.touched = false;
        clock.idle = false;
        clock.seenMs = readingMs;
      } else if (idleMs !== undefined && readingMs - clock.seenMs >= idleMs) {
        clock.idle = true;
      }
    }
  }

  /** Reading time until the next split can become idle; `Infinity`: none can. */
  untilIdleMs(readingMs: number): number {
    const { idleMs } = this.#strategy;
    let left = Number.POSITIVE_INFINITY;
    if (idleMs === undefined) return left;
    for (const clock of this.#clocks.values()) {
      if (clock.ended || clock.idle || clock.paused) continue;
      left = Math.min(left, clock.seenMs + idleMs - readingMs);
    }
    return left;
  }

  /** The smallest of the active splits; see {@link combinedWatermark}. Without any the source alone knows of the end. */
  get watermarkMs(): number {
    const combinedMs = combinedWatermark(this.#clocks.values());
    return combinedMs === Number.POSITIVE_INFINITY ? Number.NEGATIVE_INFINITY : combinedMs;
  }

  /** No split is active: they are idle, or there is none (yet) to read here. */
  get idle(): boolean {
    let open = 0;
    for (const clock of this.#clocks.values()) {
      if (clock.ended) continue;
      if (!clock.idle) return false;
      open++;
    }
    return open > 0 || this.#toldApart;
  }

  /** There is no split (any more, or yet). */
  get isEmpty(): boolean {
    for (const clock of this.#clocks.values()) if (!clock.ended) return false;
    return true;
  }

  get anyPaused(): boolean {
    return this.#paused.size > 0;
  }

  /**
   * Which splits are too far ahead: of the slowest active one here, or of `othersMs`, which is what others have come to.
   * `all`: there is nothing to read.
   */
  align(othersMs: number): { readonly changed: boolean; readonly all: boolean; readonly ids: ReadonlySet<string> } {
    const { aheadMaxMs = Number.POSITIVE_INFINITY } = this.#strategy;
    let slowestMs = othersMs;
    for (const clock of this.#clocks.values()) {
      if (!clock.ended && !clock.idle) slowestMs = Math.min(slowestMs, clock.watermarkMs);
    }
    const ids = new Set<string>();
    let open = 0;
    for (const clock of this.#clocks.values()) {
      if (clock.ended) continue;
      open++;
      clock.paused = clock.watermarkMs > Number.NEGATIVE_INFINITY && clock.watermarkMs - slowestMs > aheadMaxMs;
      if (clock.paused) ids.add(clock.id ?? '');
    }
    const changed = ids.size !== this.#paused.size || [...ids].some((id) => !this.#paused.has(id));
    this.#paused = ids;
    return { changed, all: open > 0 && ids.size === open, ids };
  }

  #add(id: string | undefined, readingMs: number): SplitClock<T> {
    const clock = new SplitClock(id, this.#strategy.tracker(), readingMs);
    this.#clocks.set(id, clock);
    return clock;
  }
}
