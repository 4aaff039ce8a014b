import { MillraceError } from '@millrace/kernel';
import { type Codec, type KeyValue, keyCodec, msgpack } from '@millrace/state';
import { checkSameJob, type GraphBuilder, type Port } from '../graph/graph-builder.ts';
import { AsyncMapOperator, type AsyncWork } from '../operators/async-map-operator.ts';
import { callPolicy } from '../operators/bounded-call.ts';
import { BroadcastOperator } from '../operators/broadcast-operator.ts';
import { asyncMapWork, lookupWork } from '../operators/lookup-logic.ts';
import { FilterOperator, FlatMapOperator, MapOperator } from '../operators/stateless.ts';
import type { Operator } from '../runtime/operator.ts';
import type { AsyncContext, AsyncMapOptions, LookupJoinSpec } from './async-map.ts';
import type { BroadcastShape, BroadcastSpec, SideContext } from './broadcast.ts';
import { KeyedStream } from './keyed-stream.ts';
import type { OperatorOptions } from './process.ts';
import { refuseAsync } from './refuse-async.ts';
import type { SideTag } from './side-tag.ts';
import type { Sink } from './sink.ts';
import type { ToStreamOptions } from './to-stream-options.ts';

/** A function that returns a promise is none of the synchronous ones: the compiler then names the mend. */
type Synchronous<U> = 0 extends 1 & U ? unknown : [U] extends [PromiseLike<unknown>] ? 'use mapAsync' : unknown;

/** Records without a key. Methods describe; nothing runs before the job starts. */
export class Stream<T> {
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
    return new Stream(this.#builder, [...this.#ports, ...others.flatMap((other) => other.#portsFor(this.#builder))]);
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
    Stream.#broadcast(this.#builder, other, node);
    return streamOf(this.#builder, node, spec.output ?? msgpack<U>());
  }

  /** What the operator of this stream sends to a side output. */
  sideOutput<X>(tag: SideTag<X>): Stream<X> {
    const ports = this.#ports.map((port) => ({ ...port, side: tag.name, codec: tag.codec as Codec<never> }));
    for (const port of ports) this.#builder.side(port);
    return new Stream(this.#builder, ports);
  }

  /** Groups by key: records of one key go to one subtask and are handled in order. */
  keyBy<K extends KeyValue>(key: (record: T) => K, codec?: Codec<K>): KeyedStream<K, T> {
    refuseAsync('keyBy', { keyBy: key });
    checkNotSpread(this.#ports);
    const builder = this.#builder;
    const host = {
      builder,
      stream: <U>(node: number, made: Codec<U>) => streamOf(builder, node, made),
      broadcast: <R>(stream: Stream<R>, node: number) => Stream.#broadcast(builder, stream, node),
    };
    return new KeyedStream(host, { ports: this.#ports, key, keyCodec: (codec ?? keyCodec) as Codec<never> });
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

  static #broadcast<R>(builder: GraphBuilder, stream: Stream<R>, node: number): void {
    builder.connect(stream.#portsFor(builder), node, { input: 1, partitioning: { kind: 'broadcast' } });
  }

  /** For an operator of this job. */
  #portsFor(builder: GraphBuilder): readonly Port[] {
    checkSameJob(builder, this.#builder);
    return this.#ports;
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

/** `keyBy` says where records go; what said otherwise before it would be without effect. */
function checkNotSpread(ports: readonly Port[]): void {
  for (const { spread } of ports) {
    const kind = typeof spread === 'string' ? spread : 'partitionBy';
    if (kind === 'forward' || kind === 'rebalance') continue;
    throw new MillraceError('job-graph', `keyBy after ${kind} would undo it; take one of the two away`);
  }
}

function streamOf<U>(builder: GraphBuilder, node: number, codec: Codec<U>): Stream<U> {
  return new Stream(builder, [{ node, side: undefined, codec: codec as Codec<never>, spread: 'forward' }]);
}
