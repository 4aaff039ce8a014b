import type { Codec } from '@millrace/state';
import type { FromOptions } from '../api/from-options.ts';
import type { Source, SourceReader, SplitPosition } from '../api/source.ts';
import type { WatermarkStrategy, WatermarkTracker } from '../api/watermarks.ts';
import { SourceHost } from '../operators/source-host.ts';
import type { Poll } from '../runtime/operator.ts';

type Entry =
  | { readonly kind: 'record'; readonly record: unknown; readonly split: number }
  | { readonly kind: 'watermark'; readonly timeMs: number };

/** Where the watermarks of a source come from: what the job says and what the test pushes, or the test alone. */
export type TestWatermarks = 'job' | 'pushed';

/** What a test has pushed into one source. It outlives attempts, so that a restore reads again from its position. */
export class TestInput {
  readonly splits: number;
  readonly #entries: Entry[] = [];
  readonly #readers = new Set<LogReader>();
  #records = 0;
  ended = false;

  constructor(splits: number) {
    this.splits = splits;
  }

  get length(): number {
    return this.#entries.length;
  }

  at(index: number): Entry {
    return this.#entries[index] as Entry;
  }

  /** Everything has been read by those who have to. */
  get isRead(): boolean {
    return [...this.#readers].every((reader) => reader.upToDate);
  }

  push(record: unknown): void {
    this.#entries.push({ kind: 'record', record, split: this.#records++ % this.splits });
    this.#wake();
  }

  watermark(timeMs: number): void {
    this.#entries.push({ kind: 'watermark', timeMs });
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  join(reader: LogReader): void {
    this.#readers.add(reader);
  }

  leave(reader: LogReader): void {
    this.#readers.delete(reader);
  }

  #wake(): void {
    for (const reader of this.#readers) reader.wake();
  }
}

/** The newest watermark that was pushed and read, handed from a reader to its source's strategy. */
interface Pushed {
  watermarkMs: number | undefined;
}

/** A source of the job that reads what a test has pushed; `host` is what the job itself would have run. */
export function testSource(
  input: TestInput,
  host: SourceHost<unknown>,
  watermarks: TestWatermarks,
): SourceHost<unknown> {
  const pushed: Pushed = { watermarkMs: undefined };
  const options: FromOptions<unknown> = {
    ...host.options,
    watermarks: strategy(watermarks === 'job' ? host.options.watermarks : undefined, pushed),
  };
  return new SourceHost(logSource(input, host.source.codec, pushed), options);
}

/** Watermarks are due at once, and no source waits for another: what a test pushes is read when it is pushed. */
function strategy(own: WatermarkStrategy | undefined, pushed: Pushed): WatermarkStrategy {
  return {
    idleMs: own?.idleMs,
    intervalMs: 0,
    aheadMaxMs: undefined,
    tracker: (): WatermarkTracker<unknown> => {
      const tracker = own?.tracker();
      return {
        onRecord: (record, timestampMs) => tracker?.onRecord(record, timestampMs),
        onInterval: () => later(tracker?.onInterval?.(), pushed.watermarkMs),
      };
    },
  };
}

function later(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.max(a, b);
}

function logSource(input: TestInput, codec: Codec<unknown>, pushed: Pushed): Source<unknown> {
  return {
    kind: 'test-source',
    codec,
    splits: () =>
      Promise.resolve(Array.from({ length: input.splits }, (_, order) => ({ id: `${order}`, order, data: undefined }))),
    open: (positions) => Promise.resolve(new LogReader(input, positions, pushed)),
  };
}

/** Reads the entries of its splits in the order in which they were pushed. */
class LogReader implements SourceReader<unknown> {
  readonly #input: TestInput;
  readonly #pushed: Pushed;
  readonly #from: ReadonlyMap<number, SplitPosition>;
  #next: number;
  #waiting: (() => void) | undefined;

  constructor(input: TestInput, positions: readonly SplitPosition[], pushed: Pushed) {
    this.#input = input;
    this.#pushed = pushed;
    this.#from = new Map(positions.map((one) => [one.split.order, one]));
    this.#next = Math.min(...positions.map(({ position }) => position));
    if (positions.length > 0) input.join(this);
  }

  get upToDate(): boolean {
    return this.#next >= this.#input.length;
  }

  wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }

  read(recordsMax: number, emit: (record: unknown) => void): Poll {
    for (let left = recordsMax; left > 0 && !this.upToDate; ) {
      const entry = this.#input.at(this.#next++);
      if (entry.kind === 'watermark') {
        this.#pushed.watermarkMs = later(this.#pushed.watermarkMs, entry.timeMs);
        // It leaves before the next record.
        return 'more';
      }
      const from = this.#from.get(entry.split);
      if (from === undefined || from.position >= this.#next) continue;
      emit(entry.record);
      left--;
    }
    if (!this.upToDate) return 'more';
    if (this.#from.size === 0 || this.#input.ended) return 'end';
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  positions(): readonly SplitPosition[] {
    return [...this.#from.values()].map(({ split, position }) => ({ split, position: Math.max(position, this.#next) }));
  }

  close(): Promise<void> {
    this.#input.leave(this);
    return Promise.resolve();
  }
}
