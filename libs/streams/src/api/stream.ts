import { MillraceError } from '@millrace/kernel';
import { type Codec, type KeyValue, keyCodec, msgpack, type StateShape } from '@millrace/state';
import type { GraphBuilder, Port } from '../graph/graph-builder.ts';
import { aggregateLogic, reduceLogic } from '../operators/aggregate-logic.ts';
import { AsyncMapOperator, type AsyncWork } from '../operators/async-map-operator.ts';
import { callPolicy } from '../operators/bounded-call.ts';
import { intervalJoinLogic } from '../operators/interval-join-logic.ts';
import { joinLogic } from '../operators/join-logic.ts';
import { KeyedOperator } from '../operators/keyed-operator.ts';
import { asyncMapWork, keyedLookupLogic, lookupWork } from '../operators/lookup-logic.ts';
import { outerJoinLogic } from '../operators/outer-join-logic.ts';
import { connectLogic, processLogic } from '../operators/process-logic.ts';
import { FilterOperator, FlatMapOperator, MapOperator } from '../operators/stateless.ts';
import { windowJoinLogic } from '../operators/window-join-logic.ts';
import { windowLogic } from '../operators/window-logic.ts';
import type { Operator } from '../runtime/operator.ts';
import type { AggregateSpec, WindowAggregateSpec, WindowOptions } from './aggregate.ts';
import type { AsyncContext, AsyncMapOptions, KeyedLookupJoinSpec, LookupJoinSpec } from './async-map.ts';
import { type Change, change } from './change.ts';
import { checkExecution, type Execution, type KeyedOptions } from './execution.ts';
import type { IntervalJoinSpec, JoinKind, JoinSpec, OuterJoinSpec, OuterKind, WindowJoinSpec } from './joins.ts';
import type { ConnectSpec, KeyedLogic, OperatorOptions, ProcessSpec } from './process.ts';
import { refuseAsync } from './refuse-async.ts';
import type { SideTag } from './side-tag.ts';
import type { Sink } from './sink.ts';
import type { TumblingWindows } from './windows.ts';

export interface ToStreamOptions<U> extends OperatorOptions {
  /** How the results are written between threads; default msgpack. */
  readonly codec?: Codec<U>;
}

/** The canonical key codec unless another is given. */
type Key = KeyValue;

/** Records without a key. Methods describe; nothing runs before the job starts. */
export class Stream<T> {
  readonly #builder: GraphBuilder;
  readonly #ports: readonly Port[];

  constructor(builder: GraphBuilder, ports: readonly Port[]) {
    this.#builder = builder;
    this.#ports = ports;
  }

  /** One record in, one out. */
  map<U>(fn: (record: T, timestampMs: number) => U, options: ToStreamOptions<U> = {}): Stream<U> {
    return this.#then('map', fn, options, () => new MapOperator(fn));
  }

  /** Only the records that `keep` accepts. */
  filter<U extends T>(keep: (record: T, timestampMs: number) => record is U, options?: OperatorOptions): Stream<U>;
  filter(keep: (record: T, timestampMs: number) => boolean, options?: OperatorOptions): Stream<T>;
  filter(keep: (record: T, timestampMs: number) => boolean, options: OperatorOptions = {}): Stream<T> {
    const codec = this.#ports[0]?.codec as Codec<T>;
    return this.#then('filter', keep, { ...options, codec }, () => new FilterOperator(keep));
  }

  /** One record in, any number out. */
  flatMap<U>(fn: (record: T, timestampMs: number) => Iterable<U>, options: ToStreamOptions<U> = {}): Stream<U> {
    return this.#then('flat-map', fn, options, () => new FlatMapOperator(fn));
  }

  /**
   * One record in, one out, by a function that may wait. Calls overlap up to `concurrency`; state has to wait for none of
   * them but at a checkpoint, which holds the effect of every record before it.
   */
  mapAsync<U>(
    fn: (record: T, ctx: AsyncContext) => Promise<U> | U,
    options: AsyncMapOptions<T, U> = {},
  ): Stream<Awaited<U>> {
    const work = asyncMapWork(fn as AsyncWork['call'], options);
    return this.#asynchronous('map-async', work, options.uid, (options.codec ?? msgpack()) as Codec<Awaited<U>>);
  }

  /** Each record with what an asynchronous function finds for it. */
  lookupJoin<R, U, M extends 'inner' | 'left' = 'inner'>(spec: LookupJoinSpec<T, R, U, M>): Stream<U> {
    refuseAsync('lookupJoin', { pair: spec.pair, fallback: spec.fallback });
    return this.#asynchronous('lookup-join', lookupWork(spec), spec.uid, spec.output);
  }

  /** The records of both streams, in any order. */
  union(...others: readonly Stream<T>[]): Stream<T> {
    return new Stream(this.#builder, [...this.#ports, ...others.flatMap((other) => other.#ports)]);
  }

  /** Spreads the records evenly over the next operator's subtasks. */
  rebalance(): Stream<T> {
    return new Stream(
      this.#builder,
      this.#ports.map((port) => ({ ...port, spread: 'rebalance' as const })),
    );
  }

  /** Gives every record to every subtask of the next operator. */
  broadcast(): Stream<T> {
    return new Stream(
      this.#builder,
      this.#ports.map((port) => ({ ...port, spread: 'broadcast' as const })),
    );
  }

  /** What the operator of this stream sends to a side output. */
  sideOutput<X>(tag: SideTag<X>): Stream<X> {
    const ports = this.#ports.map((port) => ({ ...port, side: tag.name, codec: tag.codec as Codec<never> }));
    for (const port of ports) this.#builder.side(port);
    return new Stream(this.#builder, ports);
  }

  /** Groups by key: records of one key go to one subtask and are handled in order. */
  keyBy<K extends Key>(key: (record: T) => K, codec?: Codec<K>): KeyedStream<K, T> {
    refuseAsync('keyBy', { keyBy: key });
    return new KeyedStream(this.#builder, { ports: this.#ports, key, keyCodec: (codec ?? keyCodec) as Codec<never> });
  }

  /** Ends the stream. */
  to(sink: Sink<T>, options: OperatorOptions = {}): void {
    const node = this.#builder.add({
      kind: sink.kind,
      uid: options.uid,
      stateful: sink.stateful,
      role: 'sink',
      exclusive: sink.exclusive,
      create: () => sink.create(),
    });
    this.#builder.connect(this.#ports, node);
  }

  #asynchronous<U>(kind: string, work: AsyncWork, uid: string | undefined, codec: Codec<U>): Stream<U> {
    callPolicy(work.options);
    const create = (): Operator => new AsyncMapOperator(work);
    const node = this.#builder.add({ kind, uid, stateful: false, role: 'transform', create });
    this.#builder.connect(this.#ports, node);
    return streamOf(this.#builder, node, codec);
  }

  #then<U>(kind: string, fn: unknown, options: ToStreamOptions<U>, create: () => Operator): Stream<U> {
    refuseAsync(kind, { [kind]: fn });
    const node = this.#builder.add({ kind, uid: options.uid, stateful: false, role: 'transform', create });
    this.#builder.connect(this.#ports, node);
    return streamOf(this.#builder, node, options.codec ?? msgpack<U>());
  }
}

interface KeyedSide {
  readonly ports: readonly Port[];
  readonly key: (record: never) => Key;
  readonly keyCodec: Codec<never>;
}

interface LogicSpec<U> {
  readonly uid?: string | undefined;
  readonly execution?: Execution | undefined;
  readonly output?: Codec<U>;
}

type AddLogic = <U>(spec: LogicSpec<U>, logic: KeyedLogic) => Stream<U>;

/** Records grouped by key: what operators with state work on. */
export class KeyedStream<K extends Key, T> {
  readonly #builder: GraphBuilder;
  readonly #side: KeyedSide;

  constructor(builder: GraphBuilder, side: KeyedSide) {
    this.#builder = builder;
    this.#side = side;
  }

  /** Handlers with state and timers. */
  process<S extends StateShape = Record<never, never>, U = never>(spec: ProcessSpec<K, T, S, U>): Stream<U> {
    return this.#logic('process', spec, processLogic(spec));
  }

  /** The running combination of a key's records, emitted at each. */
  reduce(combine: (a: T, b: T) => T, options: ToStreamOptions<T> & KeyedOptions = {}): Stream<T> {
    refuseAsync('reduce', { reduce: combine });
    const codec = options.codec ?? (this.#side.ports[0]?.codec as Codec<unknown> as Codec<T>);
    return this.#logic('reduce', { ...options, output: codec }, reduceLogic(combine, codec));
  }

  /** The running aggregate of a key's records, emitted at each. */
  aggregate<A, U>(spec: AggregateSpec<K, T, A, U>): Stream<U> {
    refuseAsync('aggregate', spec);
    return this.#logic('aggregate', spec, aggregateLogic(spec));
  }

  /** Splits each key's records into windows of event time. */
  window(windows: TumblingWindows, options: WindowOptions<T> = {}): WindowedStream<K, T> {
    return new WindowedStream(windows, options, (spec, logic) => this.#logic('window', spec, logic));
  }

  /** Two streams with keys of one type, for handlers that share state. */
  connect<R>(other: KeyedStream<K, R>): ConnectedStreams<K, T, R> {
    return new ConnectedStreams((spec, logic) =>
      this.#logic('connect', spec, logic, other as unknown as KeyedStream<K, never>),
    );
  }

  /** Every pair of records of the two streams that have one key, whichever comes first. */
  join<R, U>(other: KeyedStream<K, R>, spec: JoinSpec<K, T, R, U>): Stream<U> {
    refuseAsync('join', spec);
    return this.#logic('join', spec, joinLogic(spec), other as unknown as KeyedStream<K, never>);
  }

  /**
   * As {@link join}, with the records that have no partner, too, as changes of the joined table: a record without partner
   * is inserted alone, and retracted when its first partner comes.
   */
  outerJoin<M extends OuterKind, R, U>(
    other: KeyedStream<K, R>,
    spec: OuterJoinSpec<M, K, T, R, U>,
  ): Stream<Change<U>> {
    refuseAsync('outerJoin', spec);
    const { uid, execution } = spec;
    const changes = { uid, execution, output: change(spec.output) };
    return this.#logic(`${spec.kind}-join`, changes, outerJoinLogic(spec), other as unknown as KeyedStream<K, never>);
  }

  /**
   * Every pair of records of one key whose times differ by `lower` to `upper`; its time is the later of the two. An outer
   * one also emits what has met no partner, with the time at which that is certain. State goes when the watermark has
   * passed; records that come too late go to the side outputs, or are dropped and counted.
   */
  intervalJoin<R, U, M extends JoinKind = 'inner'>(
    other: KeyedStream<K, R>,
    spec: IntervalJoinSpec<K, T, R, U, M>,
  ): Stream<U> {
    refuseAsync('intervalJoin', spec);
    const logic = intervalJoinLogic(spec);
    return this.#logic('interval-join', spec, logic, other as unknown as KeyedStream<K, never>);
  }

  /**
   * Every pair of records of one key that lie in one window, when the window is over. Its records are held in one value:
   * for windows of some thousand records of a key.
   */
  windowJoin<R, U, M extends JoinKind = 'inner'>(
    other: KeyedStream<K, R>,
    windows: TumblingWindows,
    spec: WindowJoinSpec<K, T, R, U, M>,
  ): Stream<U> {
    refuseAsync('windowJoin', spec);
    const logic = windowJoinLogic(windows, spec);
    return this.#logic('window-join', spec, logic, other as unknown as KeyedStream<K, never>);
  }

  /** Each record with what an asynchronous function finds for its key, which may be kept in the key's state. */
  lookupJoin<R, U, M extends 'inner' | 'left' = 'inner'>(spec: KeyedLookupJoinSpec<K, T, R, U, M>): Stream<U> {
    refuseAsync('lookupJoin', { pair: spec.pair, fallback: spec.fallback });
    callPolicy(spec);
    return this.#logic('lookup-join', spec, () => keyedLookupLogic(spec));
  }

  #logic<U>(
    kind: string,
    spec: LogicSpec<U>,
    logic: KeyedLogic | (() => KeyedLogic),
    other?: KeyedStream<K, never>,
  ): Stream<U> {
    const sides = other === undefined ? [this.#side] : [this.#side, other.#side];
    const codec = sameCodec(spec.uid ?? kind, sides);
    const keys = sides.map((side) => side.key);
    const { execution } = spec;
    checkExecution(spec.uid ?? kind, execution);
    const own = typeof logic === 'function' ? logic : (): KeyedLogic => logic;
    const create = (): Operator => new KeyedOperator(own(), keys, codec, execution);
    const node = this.#builder.add({ kind, uid: spec.uid, stateful: true, role: 'transform', create });
    for (const [input, side] of sides.entries()) {
      const partitioning = { kind: 'hash', key: side.key as (value: never) => unknown, keyCodec: codec } as const;
      this.#builder.connect(side.ports, node, { input, partitioning });
    }
    return streamOf(this.#builder, node, spec.output ?? msgpack<U>());
  }
}

/** Records grouped by key and window. */
export class WindowedStream<K extends Key, T> {
  readonly #windows: TumblingWindows;
  readonly #options: WindowOptions<T>;
  readonly #add: AddLogic;

  constructor(windows: TumblingWindows, options: WindowOptions<T>, add: AddLogic) {
    this.#windows = windows;
    this.#options = options;
    this.#add = add;
  }

  /** One result for each key and window, when the watermark has passed its end. */
  aggregate<A, U>(spec: WindowAggregateSpec<K, T, A, U>): Stream<U> {
    const { uid, execution } = this.#options;
    refuseAsync('aggregate', spec);
    return this.#add({ uid, execution, output: spec.output }, windowLogic(this.#windows, this.#options, spec));
  }

  /** The combination of a key's records in each window. */
  reduce(combine: (a: T, b: T) => T, codec: Codec<T> = msgpack<T>()): Stream<T> {
    refuseAsync('reduce', { reduce: combine });
    return this.aggregate<{ value: T | undefined }, T>({
      accumulator: boxed(codec),
      output: codec,
      create: () => ({ value: undefined }),
      add: (box, record) => ({ value: box.value === undefined ? record : combine(box.value, record) }),
      result: (box) => box.value as T,
    });
  }
}

/** Two keyed streams and the handlers that share their keys' state. */
export class ConnectedStreams<K extends Key, L, R> {
  readonly #add: AddLogic;

  constructor(add: AddLogic) {
    this.#add = add;
  }

  process<S extends StateShape = Record<never, never>, U = never>(spec: ConnectSpec<K, L, R, S, U>): Stream<U> {
    return this.#add(spec, connectLogic(spec));
  }
}

function sameCodec(name: string, sides: readonly KeyedSide[]): Codec<never> {
  const [first, second] = sides.map((side) => side.keyCodec);
  if (first !== undefined && (second === undefined || first.format === second.format)) return first;
  throw new MillraceError(
    'job-graph',
    `${name}: the two streams are keyed by different codecs (${first?.format}, ${second?.format})`,
  );
}

function streamOf<U>(builder: GraphBuilder, node: number, codec: Codec<U>): Stream<U> {
  return new Stream(builder, [{ node, side: undefined, codec: codec as Codec<never>, spread: 'forward' }]);
}

function boxed<T>(codec: Codec<T>): Codec<{ value: T | undefined }> {
  return {
    format: codec.format,
    encode: (box, writer) => codec.encode(box.value as T, writer),
    decode: (reader) => ({ value: codec.decode(reader) }),
  };
}
