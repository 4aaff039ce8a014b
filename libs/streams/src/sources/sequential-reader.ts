import type { SourceReader, Split, SplitPosition } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';

/** Records of one split in memory, or the promise of them. */
export interface SplitRecords<T> {
  /** Emits at most `recordsMax` records from `position` on. */
  read(recordsMax: number, emit: (record: T) => void): Poll;
  readonly position: number;
  close(): Promise<void>;
}

/** Opens a split at a position. Called early for the next split, so that it is at hand when its turn comes. */
export type OpenSplit<T> = (split: Split, position: number) => Promise<SplitRecords<T>>;

interface Opening<T> {
  readonly promise: Promise<void>;
  records: SplitRecords<T> | undefined;
}

/** Reads splits one after the other, in order, with one read ahead. */
export class SequentialReader<T> implements SourceReader<T> {
  readonly #openSplit: OpenSplit<T>;
  readonly #left: SplitPosition[];
  #current: Opening<T> | undefined;
  #ahead: Opening<T> | undefined;

  constructor(positions: readonly SplitPosition[], openSplit: OpenSplit<T>) {
    this.#openSplit = openSplit;
    this.#left = [...positions];
  }

  read(recordsMax: number, emit: (record: T) => void): Poll {
    if (this.#left.length === 0) return 'end';
    this.#current ??= this.#start(0);
    const { records, promise } = this.#current;
    if (records === undefined) return promise;
    if (this.#ahead === undefined && this.#left.length > 1) this.#ahead = this.#start(1);
    const poll = records.read(recordsMax, emit);
    if (poll !== 'end') return poll;
    this.#left.shift();
    this.#current = this.#ahead;
    this.#ahead = undefined;
    const closed = records.close();
    return this.#left.length > 0 ? 'more' : closed.then(() => undefined);
  }

  positions(): readonly SplitPosition[] {
    const position = this.#current?.records?.position;
    return this.#left.map((item, index) => (index === 0 && position !== undefined ? { ...item, position } : item));
  }

  async close(): Promise<void> {
    for (const opening of [this.#current, this.#ahead]) {
      await opening?.promise.catch(() => undefined);
      await opening?.records?.close();
    }
    this.#left.length = 0;
    this.#current = undefined;
    this.#ahead = undefined;
  }

  #start(index: number): Opening<T> {
    const { split, position } = this.#left[index] as SplitPosition;
    const opening: { promise: Promise<void>; records: SplitRecords<T> | undefined } = {
      promise: this.#openSplit(split, position).then((records) => {
        opening.records = records;
      }),
      records: undefined,
    };
    // A failure of the one read ahead is thrown when its turn comes.
    opening.promise.catch(() => undefined);
    return opening;
  }
}
