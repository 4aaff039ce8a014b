import { MillraceError } from '@millrace/kernel';
import { type Codec, msgpack } from '@millrace/state';
import type { Source, SourceReader, Split, SplitPosition } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';

export interface GeneratorOptions<T> {
  /** The record with this index: a pure function, so that a replay gives the same records. */
  readonly record: (index: number) => T;
  /** Number of records; without it the source never ends. */
  readonly records?: number;
  /** Parts that subtasks share; fixed for the life of the job's state. Default 128. */
  readonly splits?: number;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<T>;
}

/**
 * Indices are dealt to the splits in runs of this length, and a reader always goes on with its lowest: one subtask
 * emits in the order of the index, and several stay close to it.
 */
const runLength = 64;

/** Records computed from their index. */
export function generator<T>(options: GeneratorOptions<T>): Source<T> {
  const records = options.records ?? Number.MAX_SAFE_INTEGER;
  const splits = options.splits ?? 128;
  if (!Number.isSafeInteger(records) || records < 0) {
    throw new MillraceError('bad-argument', `generator: records must be a whole number, not ${records}`);
  }
  if (!Number.isSafeInteger(splits) || splits < 1 || splits > 32_768) {
    throw new MillraceError('bad-argument', `generator: splits must be 1 to 32768, not ${splits}`);
  }
  return {
    kind: 'generator',
    codec: options.codec ?? msgpack<T>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: () =>
      Promise.resolve(Array.from({ length: splits }, (_, order) => ({ id: `${order}`, order, data: { splits } }))),
    open: (positions) => Promise.resolve(new GeneratorReader(options.record, records, positions)),
  };
}

interface Cursor {
  readonly split: Split;
  readonly splits: number;
  /** Records of this split so far. */
  position: number;
}

function indexOf(cursor: Cursor): number {
  const run = Math.floor(cursor.position / runLength);
  return (run * cursor.splits + cursor.split.order) * runLength + (cursor.position % runLength);
}

class GeneratorReader<T> implements SourceReader<T> {
  readonly #record: (index: number) => T;
  readonly #records: number;
  #cursors: Cursor[];
  #current: Cursor | undefined;

  constructor(record: (index: number) => T, records: number, positions: readonly SplitPosition[]) {
    this.#record = record;
    this.#records = records;
    this.#cursors = positions.map(({ split, position }) => ({
      split,
      splits: (split.data as { readonly splits: number }).splits,
      position,
    }));
    this.#choose();
  }

  read(recordsMax: number, emit: (record: T) => void): Poll {
    const record = this.#record;
    let left = recordsMax;
    while (left > 0) {
      const cursor = this.#current;
      if (cursor === undefined) return 'end';
      const first = indexOf(cursor);
      const inRun = runLength - (cursor.position % runLength);
      const count = Math.min(left, inRun, this.#records - first);
      for (let index = first; index < first + count; index++) emit(record(index));
      cursor.position += count;
      left -= count;
      if (count === inRun || count === 0 || first + count >= this.#records) this.#choose();
    }
    return this.#current === undefined ? 'end' : 'more';
  }

  positions(): readonly SplitPosition[] {
    return this.#cursors.map(({ split, position }) => ({ split, position }));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The cursor with the lowest index; drops those that are done. */
  #choose(): void {
    this.#cursors = this.#cursors.filter((cursor) => indexOf(cursor) < this.#records);
    let lowest: Cursor | undefined;
    for (const cursor of this.#cursors) {
      if (lowest === undefined || indexOf(cursor) < indexOf(lowest)) lowest = cursor;
    }
    this.#current = lowest;
  }
}
