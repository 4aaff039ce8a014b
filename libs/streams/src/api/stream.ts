import { MillraceError } from '@millrace/kernel';
import { type Codec, type KeyValue, keyCodec, msgpack, type StateShape } from '@millrace/state';
import type { GraphBuilder, Port } from '../graph/graph-builder.ts';
import { aggregateLogic, reduceLogic } from '../operators/aggregate-logic.ts';
import { AsyncMapOperator, type AsyncWork } from '../operators/async-map-operator.ts';
import { callPolicy } from '../operators/bounded-call.ts';
import { BroadcastOperator, KeyedBroadcastOperator } from '../operators/broadcast-operator.ts';
import { deduplicateLogic } from '../operators/deduplicate-logic.ts';
import { intervalJoinLogic } from '../operators/interval-join-logic.ts';
import { joinLogic } from '../operators/join-logic.ts';
import { KeyedOperator } from '../operators/keyed-operator.ts';
import { asyncMapWork, keyedLookupLogic, lookupWork } from '../operators/lookup-logic.ts';
import { outerJoinLogic } from '../operators/outer-join-logic.ts';
import { connectLogic, processLogic } from '../operators/process-logic.ts';
import { FilterOperator, FlatMapOperator, MapOperator } from '../operators/stateless.ts';
import { topNLogic } from '../operators/top-n-logic.ts';
import { windowJoinLogic } from '../operators/window-join-logic.ts';
import type { Operator } from '../runtime/operator.ts';
import type { AggregateSpec, WindowOptions } from './aggregate.ts';
import type { AsyncContext, AsyncMapOptions, KeyedLookupJoinSpec, LookupJoinSpec } from './async-map.ts';
import type { BroadcastShape, BroadcastSpec, KeyedBroadcastSpec, SideContext } from './broadcast.ts';
import { type Change, change } from './change.ts';
import type { Duration } from './duration.ts';
import { checkExecution, type Execution, type KeyedOptions } from './execution.ts';
import type {
  IntervalJoinSpec,
  JoinKind,
  JoinSpec,
  JoinWindows,
  OuterJoinSpec,
  OuterKind,
  WindowJoinSpec,
} from './joins.ts';
import type { ConnectSpec, KeyedLogic, OperatorOptions, ProcessSpec } from './process.ts';
import type { DeduplicateOptions, TopNSpec } from './ranking.ts';
import { refuseAsync } from './refuse-async.ts';
import type { SideTag } from './side-tag.ts';
import type { Sink } from './sink.ts';
import type { Trigger } from './trigger.ts';
import { WindowedStream } from './windowed-stream.ts';
import type { CountWindows, FixedWindows, GlobalWindows, SessionWindows, Windows } from './windows.ts';

export interface ToStreamOptions<U> extends OperatorOptions {
  /** How the results are written between threads; default msgpack. */
  readonly codec?: Codec<U>;
}

export interface ReduceOptions<T> extends ToStreamOptions<T>, KeyedOptions {
  /** How long what is combined is kept after a key's last record, by the machine's clock. Default: for ever. */
  readonly ttl?: Duration;
}

/** A function that returns a promise is none of the synchronous ones: the compiler then names the mend. */
type Synchronous<U> = 0 extends 1 & U ? unknown : [U] extends [PromiseLike<unknown>] ? 'use mapAsync' : unknown;

/** The canonical key codec unless another is given. */
type Key = KeyValue;

/** Of a stream, for the other classes of this file. */
let portsOf: <T>(builder: GraphBuilder, stream: Stream<T>) => readonly Port[];

/** Records without a key. Methods describe; nothing runs before the job starts. */
export class Stream<T> {
  static {
    portsOf = (builder, stream) => {
      checkSameJob(builder, stream.#builder);
      return stream.#ports;
    };
  }

  readonly #builder: GraphBuilder;
  readonly #ports: readonly Port[];

  constructor(builder: GraphBuilder, ports: readonly Port[]) {
    this.#builder = builder;
    this.#ports = ports;
  }

  /** One record in, one out. */
  map<U>(fn: ((record: T, timestampMs: number) => U) & Synchronous<U>, options: ToStreamOptions<U> = {}): Stream<U> {
    return this.#then('map', fn, options, () => new MapOperator(fn));
  }

  /** Only the records that `keep` accepts. */
  filter<U extends T>(keep: (record: T, timestampMs: number) => record is U, options?: OperatorOptions): Stream<U>;
  filter(keep: (record: T, timestampMs: number) => boolean, options?: OperatorOptions): Stream<T>;
  filter(keep: (record: T, timestampMs: number) => boolean, options: OperatorOptions = {}): Stream<T> {
    const codec = this.#ports[0]?.codec as Codec<T>;
    return this.#then('filter', keep, { ...options, codec }, () => new FilterOperator(keep));
  }

  /** One record in, any number out; `ctx.side` sends to side outputs. */
  flatMap<U>(
    fn: (record: T, timestampMs: number, ctx: SideContext) => Iterable<U>,
    options: ToStreamOptions<U> = {},
  ): Stream<U> {
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
    refuseAsync('lookupJoin', spec, ['lookup']);
    return this.#asynchronous('lookup-join', lookupWork(spec), spec.uid, spec.output);
  }

  /** The records of both streams, in any order. */
  union(...others: readonly Stream<T>[]): Stream<T> {
    return new Stream(this.#builder, [...this.#ports, ...others.flatMap((other) => portsOf(this.#builder, other))]);
  }

  /** Spreads the records evenly over the next operator's subtasks. */
  rebalance(): Stream<T> {
    return new Stream(
      this.#builder,
      this.#ports.map((port) => ({ ...port, spread: 'rebalance' as const })),
    );
  }

  /**
   * Gives each record to the subtask of the next operator that `choose` names, from 0 to `parallelism` - 1: for operators
   * without a key, which have no state that a rescale would have to follow. By key: `keyBy`.
   */
  partitionBy(choose: (record: T, parallelism: number) => number): Stream<T> {
    refuseAsync('partitionBy', { partitionBy: choose });
    const spread = { kind: 'custom', choose } as const;
    return new Stream(
      this.#builder,
      this.#ports.map((port) => ({ ...port, spread })),
    );
  }

  /** Gives every record to every subtask of the next operator. */
  broadcast(): Stream<T> {
    return new Stream(
      this.#builder,
      this.#ports.map((port) => ({ ...port, spread: 'broadcast' as const })),
    );
  }

  /**
   * A handler of this stream's records, and one of `other`'s, which every subtask gets: these keep maps that all
   * subtasks hold alike, in the checkpoint, and that the first handler reads.
   */
  connectBroadcast<R, const B extends BroadcastShape, U = never>(
    other: Stream<R>,
    spec: BroadcastSpec<T, R, B, U>,
  ): Stream<U> {
    refuseAsync('connectBroadcast', spec);
    const create = (): Operator => new BroadcastOperator(spec as never);
    const node = this.#builder.add({ kind: 'broadcast', uid: spec.uid, stateful: true, role: 'transform', create });
    this.#builder.connect(this.#ports, node);
    connectBroadcast(this.#builder, other, node);
    return streamOf(this.#builder, node, spec.output ?? msgpack<U>());
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
    checkNotSpread(this.#ports);
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
  reduce(combine: (a: T, b: T) => T, options: ReduceOptions<T> = {}): Stream<T> {
    refuseAsync('reduce', { reduce: combine });
    const codec = options.codec ?? (this.#side.ports[0]?.codec as Codec<unknown> as Codec<T>);
    return this.#logic('reduce', { ...options, output: codec }, reduceLogic(combine, codec, options));
  }

  /** The running aggregate of a key's records, emitted at each. */
  aggregate<A, U>(spec: AggregateSpec<K, T, A, U>): Stream<U> {
    refuseAsync('aggregate', spec);
    return this.#logic('aggregate', spec, aggregateLogic(spec));
  }

  /** Splits each key's records into windows. */
  window(windows: SessionWindows<T>, options?: WindowOptions<T>): WindowedStream<K, T, true>;
  window(windows: FixedWindows | CountWindows, options?: WindowOptions<T>): WindowedStream<K, T>;
  window(
    windows: GlobalWindows,
    options: WindowOptions<T> & { readonly trigger: Trigger<T, unknown> },
  ): WindowedStream<K, T>;
  window(windows: Windows<T>, options: WindowOptions<T> = {}): WindowedStream<K, T, boolean> {
    const codec = this.#side.ports[0]?.codec as Codec<unknown> as Codec<T>;
    return new WindowedStream(windows, options, {
      codec,
      add: (spec, logic) => this.#logic('window', spec, logic),
    });
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

  /** Every pair of records of one key that lie in one window, when the window is over; each window emits once. */
  windowJoin<R, U, M extends JoinKind = 'inner'>(
    other: KeyedStream<K, R>,
    windows: JoinWindows<T | R>,
    spec: WindowJoinSpec<K, T, R, U, M>,
  ): Stream<U> {
    refuseAsync('windowJoin', spec);
    const logic = windowJoinLogic(windows, spec);
    return this.#logic('window-join', spec, logic, other as unknown as KeyedStream<K, never>);
  }

  /**
   * Handlers with state and timers, and one of `other`'s records, which every subtask gets: these keep maps that all
   * subtasks hold alike, in the checkpoint, and that the handlers by key read.
   */
  connectBroadcast<R, const B extends BroadcastShape, S extends StateShape = Record<never, never>, U = never>(
    other: Stream<R>,
    spec: KeyedBroadcastSpec<K, T, R, B, S, U>,
  ): Stream<U> {
    refuseAsync('connectBroadcast', spec, ['onRecord', 'onTimer', 'onProcessingTimer']);
    const keyed = (create: (logic: KeyedLogic) => KeyedOperator): Operator =>
      new KeyedBroadcastOperator(spec as never, create);
    const logic = { kind: 'broadcast', create: keyed };
    const node = this.#add(spec, logic, [this.#side]);
    connectBroadcast(this.#builder, other, node);
    return streamOf(this.#builder, node, spec.output ?? msgpack<U>());
  }

  /** Of the records of a key those with which something new begins, or the newest. */
  deduplicate(options: DeduplicateOptions<T> = {}): Stream<T> {
    const codec = options.codec ?? (this.#side.ports[0]?.codec as Codec<unknown> as Codec<T>);
    return this.#logic('deduplicate', { ...options, output: codec }, deduplicateLogic(options));
  }

  /** The best records of each key so far, whenever they change. */
  topN<U>(spec: TopNSpec<K, T, U>): Stream<U> {
    refuseAsync('topN', spec);
    return this.#logic('top-n', spec, topNLogic(spec));
  }

  /** Each record with what an asynchronous function finds for its key, which may be kept in the key's state. */
  lookupJoin<R, U, M extends 'inner' | 'left' = 'inner'>(spec: KeyedLookupJoinSpec<K, T, R, U, M>): Stream<U> {
    refuseAsync('lookupJoin', spec, ['lookup']);
    callPolicy(spec);
    return this.#logic('lookup-join', spec, () => keyedLookupLogic(spec));
  }

  #logic<U>(
    kind: string,
    spec: LogicSpec<U>,
    logic: KeyedLogic | (() => KeyedLogic),
    other?: KeyedStream<K, never>,
  ): Stream<U> {
    if (other !== undefined) checkSameJob(this.#builder, other.#builder);
    const sides = other === undefined ? [this.#side] : [this.#side, other.#side];
    const own = typeof logic === 'function' ? logic : (): KeyedLogic => logic;
    const node = this.#add(spec, { kind, create: (keyed) => keyed(own()) }, sides);
    return streamOf(this.#builder, node, spec.output ?? msgpack<U>());
  }

  #add(
    { uid, execution }: LogicSpec<unknown>,
    { kind, create }: { kind: string; create: (keyed: (logic: KeyedLogic) => KeyedOperator) => Operator },
    sides: readonly KeyedSide[],
  ): number {
    const codec = sameCodec(uid ?? kind, sides);
    const keys = sides.map((side) => side.key);
    checkExecution(uid ?? kind, execution);
    const keyed = (logic: KeyedLogic): KeyedOperator => new KeyedOperator(logic, keys, codec, execution);
    const draft = { kind, uid, stateful: true, role: 'transform', create: () => create(keyed) } as const;
    const node = this.#builder.add(draft);
    for (const [input, side] of sides.entries()) {
      const partitioning = { kind: 'hash', key: side.key as (value: never) => unknown, keyCodec: codec } as const;
      this.#builder.connect(side.ports, node, { input, partitioning });
    }
    return node;
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

/** `keyBy` says where records go; what said otherwise before it would be without effect. */
function checkNotSpread(ports: readonly Port[]): void {
  for (const { spread } of ports) {
    const kind = typeof spread === 'string' ? spread : 'partitionBy';
    if (kind === 'forward' || kind === 'rebalance') continue;
    throw new MillraceError('job-graph', `keyBy after ${kind} would undo it; take one of the two away`);
  }
}

function checkSameJob(one: GraphBuilder, other: GraphBuilder): void {
  if (one !== other) throw new MillraceError('job-graph', 'streams of two jobs cannot flow together');
}

function connectBroadcast<T>(builder: GraphBuilder, stream: Stream<T>, node: number): void {
  builder.connect(portsOf(builder, stream), node, { input: 1, partitioning: { kind: 'broadcast' } });
}

function streamOf<U>(builder: GraphBuilder, node: number, codec: Codec<U>): Stream<U> {
  return new Stream(builder, [{ node, side: undefined, codec: codec as Codec<never>, spread: 'forward' }]);
}
