import { type Codec, msgpack } from '@millrace/state';
import { anyWindowLogic } from '../operators/any-window-logic.ts';
import { accumulated, buffered, type WindowContents } from '../operators/window-contents.ts';
import type { MergingAggregateSpec, WindowAggregateSpec, WindowOptions, WindowProcessSpec } from './aggregate.ts';
import type { KeyedLogic } from './process.ts';
import { refuseAsync } from './refuse-async.ts';
import type { Stream } from './stream.ts';
import type { Windows } from './windows.ts';

/** What a windowed stream needs of the keyed stream that it comes from. */
export interface WindowedSource<T> {
  /** How the stream's records are written between threads. */
  readonly codec: Codec<T>;
  add<U>(spec: WindowOptions<T> & { readonly output: Codec<U> }, logic: KeyedLogic): Stream<U>;
}

/** What `aggregate` takes: windows that may become one (`Merging`) need to know how. */
type SpecOf<Merging extends boolean, K, T, A, U> = Merging extends true
  ? MergingAggregateSpec<K, T, A, U>
  : WindowAggregateSpec<K, T, A, U>;

/** Records grouped by key and window. */
export class WindowedStream<K, T, Merging extends boolean = false> {
  readonly #windows: Windows<T>;
  readonly #options: WindowOptions<T>;
  readonly #source: WindowedSource<T>;

  constructor(windows: Windows<T>, options: WindowOptions<T>, source: WindowedSource<T>) {
    this.#windows = windows;
    this.#options = options;
    this.#source = source;
  }

  /** One result for each key and window, each time that it emits: when time has passed its end, if nothing else is said. */
  aggregate<A, U>(spec: SpecOf<Merging, K, T, A, U>): Stream<U> {
    const folded: WindowAggregateSpec<K, T, A, U> = spec;
    refuseAsync('aggregate', folded);
    return this.#emits(accumulated(folded, this.#source.codec), folded.output);
  }

  /** The combination of a key's records in each window. */
  reduce(combine: (a: T, b: T) => T, codec: Codec<T> = msgpack<T>()): Stream<T> {
    refuseAsync('reduce', { reduce: combine });
    const box: WindowAggregateSpec<K, T, Box<T>, T> = {
      accumulator: boxed(codec),
      output: codec,
      create: () => ({ value: undefined }),
      add: ({ value }, record) => ({ value: value === undefined ? record : combine(value, record) }),
      merge: (left, right) => ({ value: combine(left.value as T, right.value as T) }),
      result: ({ value }) => value as T,
    };
    return this.#emits(accumulated(box, this.#source.codec), codec);
  }

  /** All records of each window, which are kept until then: `aggregate` where it can be folded costs less. */
  process<U>(spec: WindowProcessSpec<K, T, U>): Stream<U> {
    return this.#emits(buffered(spec, spec.records ?? this.#source.codec), spec.output);
  }

  #emits<U>(contents: WindowContents, output: Codec<U>): Stream<U> {
    const logic = anyWindowLogic(this.#windows, this.#options, contents);
    return this.#source.add({ ...this.#options, output }, logic);
  }
}

interface Box<T> {
  readonly value: T | undefined;
}

function boxed<T>(codec: Codec<T>): Codec<Box<T>> {
  return {
    format: codec.format,
    encode: (box, writer) => codec.encode(box.value as T, writer),
    decode: (reader) => ({ value: codec.decode(reader) }),
  };
}
