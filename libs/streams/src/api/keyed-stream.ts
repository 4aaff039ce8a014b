import { MillraceError } from '@millrace/kernel';
import { type Codec, type KeyValue, msgpack, type StateShape } from '@millrace/state';
import { checkSameJob, type GraphBuilder, type Port } from '../graph/graph-builder.ts';
import { aggregateLogic, reduceLogic } from '../operators/aggregate-logic.ts';
import { callPolicy } from '../operators/bounded-call.ts';
import { KeyedBroadcastOperator } from '../operators/broadcast-operator.ts';
import { deduplicateLogic } from '../operators/deduplicate-logic.ts';
import { intervalJoinLogic } from '../operators/interval-join-logic.ts';
import { joinLogic } from '../operators/join-logic.ts';
import { KeyedOperator } from '../operators/keyed-operator.ts';
import { keyedLookupLogic } from '../operators/lookup-logic.ts';
import { outerJoinLogic } from '../operators/outer-join-logic.ts';
import { connectLogic, processLogic } from '../operators/process-logic.ts';
import { topNLogic } from '../operators/top-n-logic.ts';
import { windowJoinLogic } from '../operators/window-join-logic.ts';
import type { Operator } from '../runtime/operator.ts';
import type { AggregateSpec, WindowOptions } from './aggregate.ts';
import type { KeyedLookupJoinSpec } from './async-map.ts';
import type { BroadcastShape, KeyedBroadcastSpec } from './broadcast.ts';
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
import type { ConnectSpec, KeyedLogic, ProcessSpec } from './process.ts';
import type { DeduplicateOptions, TopNSpec } from './ranking.ts';
import { refuseAsync } from './refuse-async.ts';
import type { Stream } from './stream.ts';
import type { ToStreamOptions } from './to-stream-options.ts';
import type { Trigger } from './trigger.ts';
import { WindowedStream } from './windowed-stream.ts';
import type { CountWindows, FixedWindows, GlobalWindows, SessionWindows, Windows } from './windows.ts';

export interface ReduceOptions<T> extends ToStreamOptions<T>, KeyedOptions {
  /** How long what is combined is kept after a key's last record, by the machine's clock. Default: for ever. */
  readonly ttl?: Duration;
}

/** What a keyed stream needs of the streams without a key. */
export interface StreamHost {
  readonly builder: GraphBuilder;
  /** The main output of an operator. */
  stream<U>(node: number, codec: Codec<U>): Stream<U>;
  /** Gives every record of `stream` to every subtask of an operator, as its second input. */
  broadcast<R>(stream: Stream<R>, node: number): void;
}

export interface KeyedSide {
  readonly ports: readonly Port[];
  readonly key: (record: never) => KeyValue;
  readonly keyCodec: Codec<never>;
}

interface LogicSpec<U> {
  readonly uid?: string | undefined;
  readonly execution?: Execution | undefined;
  readonly output?: Codec<U>;
}

type AddLogic = <U>(spec: LogicSpec<U>, logic: KeyedLogic) => Stream<U>;

/** Records grouped by key: what operators with state work on. */
export class KeyedStream<K extends KeyValue, T> {
  readonly #host: StreamHost;
  readonly #side: KeyedSide;

  constructor(host: StreamHost, side: KeyedSide) {
    this.#host = host;
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
    this.#host.broadcast(other, node);
    return this.#host.stream(node, spec.output ?? msgpack<U>());
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
    if (other !== undefined) checkSameJob(this.#host.builder, other.#host.builder);
    const sides = other === undefined ? [this.#side] : [this.#side, other.#side];
    const own = typeof logic === 'function' ? logic : (): KeyedLogic => logic;
    const node = this.#add(spec, { kind, create: (keyed) => keyed(own()) }, sides);
    return this.#host.stream(node, spec.output ?? msgpack<U>());
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
    const node = this.#host.builder.add(draft);
    for (const [input, side] of sides.entries()) {
      const partitioning = { kind: 'hash', key: side.key as (value: never) => unknown, keyCodec: codec } as const;
      this.#host.builder.connect(side.ports, node, { input, partitioning });
    }
    return node;
  }
}

/** Two keyed streams and the handlers that share their keys' state. */
export class ConnectedStreams<K extends KeyValue, L, R> {
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
