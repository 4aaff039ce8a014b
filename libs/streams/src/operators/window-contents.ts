import { isPending, type MaybePromise } from '@millrace/kernel';
import {
  type Codec,
  int64,
  keyOf,
  type MapHandle,
  map,
  msgpack,
  type StateShape,
  type ValueHandle,
  value,
} from '@millrace/state';
import type { WindowAggregateSpec, WindowContext, WindowProcessSpec } from '../api/aggregate.ts';
import type { LogicContext, LogicPane } from '../api/process.ts';
import { lastMs, type Window } from '../api/windows.ts';
import { andThen, goOn } from './go-on.ts';

/** What a window keeps of its records, in a pane, and what it makes of them. */
export interface WindowContents {
  readonly shape: StateShape;
  /** True when the window was empty before. */
  add(pane: LogicPane, record: unknown): MaybePromise<boolean>;
  /** Emits the window's result; nothing when the window is empty. */
  emit(pane: LogicPane, window: Window, ctx: LogicContext): void | Promise<void>;
  clear(pane: LogicPane): void | Promise<void>;
  /** Emits the result of these records, which the caller keeps in its own way; their format. */
  emitRecords(records: readonly unknown[], window: Window, ctx: LogicContext): void | Promise<void>;
  readonly recordCodec: Codec<unknown>;
  /** Moves everything from the second pane into the first; undefined when it cannot. */
  readonly merge: ((into: LogicPane, from: LogicPane) => void | Promise<void>) | undefined;
}

/** One accumulator, into which each record is folded as it comes. */
export function accumulated<K, T, A, U>(
  spec: WindowAggregateSpec<K, T, A, U>,
  codec: Codec<T> = msgpack<T>(),
): WindowContents {
  const handleOf = (pane: LogicPane): ValueHandle<A> => pane.state['accumulator'] as unknown as ValueHandle<A>;
  return {
    shape: { accumulator: value(spec.accumulator) },
    add: (pane, record) => {
      const handle = handleOf(pane);
      return andThen(handle.get(), (old) => {
        handle.set(spec.add(old ?? spec.create(), record as T));
        return old === undefined;
      });
    },
    emit: (pane, window, ctx) =>
      goOn(handleOf(pane).get(), (accumulator) => {
        if (accumulator === undefined) return;
        ctx.emit(spec.result(accumulator, ctx.key as K, window), stamp(window, ctx));
      }),
    clear: (pane) => handleOf(pane).clear(),
    recordCodec: codec as Codec<unknown>,
    emitRecords: (records, window, ctx) => {
      let accumulator = spec.create();
      for (const record of records) accumulator = spec.add(accumulator, record as T);
      ctx.emit(spec.result(accumulator, ctx.key as K, window), stamp(window, ctx));
    },
    merge:
      spec.merge === undefined
        ? undefined
        : async (into, from) => {
            const [left, right] = await Promise.all([handleOf(into).get(), handleOf(from).get()]);
            if (right === undefined) return;
            handleOf(into).set(left === undefined ? right : (spec.merge?.(left, right) ?? left));
            handleOf(from).clear();
          },
  };
}

/** All records, in the order in which they came: each is stored on its own, so that a checkpoint writes only new ones. */
export function buffered<K, T, U>(spec: WindowProcessSpec<K, T, U>, codec: Codec<T>): WindowContents {
  return {
    shape: { count: value(int64), records: map(keyOf<number>(), codec) },
    add: (pane, record) => {
      const { count, records } = bufferOf<T>(pane);
      return andThen(count.get(), (old = 0) => {
        records.set(old, record as T);
        count.set(old + 1);
        return old === 0;
      });
    },
    async emit(pane, window, ctx) {
      const records = await recordsOf<T>(pane);
      if (records.length > 0) await spec.process(records, new ProcessContext<K, U>(ctx, window));
    },
    recordCodec: codec as Codec<unknown>,
    emitRecords: (records, window, ctx) => spec.process(records as readonly T[], new ProcessContext<K, U>(ctx, window)),
    clear: (pane) => {
      const { count, records } = bufferOf<T>(pane);
      count.clear();
      return records.clear();
    },
    async merge(into, from) {
      const moved = await recordsOf<T>(from);
      const { count, records } = bufferOf<T>(into);
      let next = (await count.get()) ?? 0;
      for (const record of moved) records.set(next++, record);
      count.set(next);
      bufferOf<T>(from).count.clear();
      await bufferOf<T>(from).records.clear();
    },
  };
}

interface WindowBuffer<T> {
  readonly count: ValueHandle<number>;
  readonly records: MapHandle<number, T>;
}

function bufferOf<T>(pane: LogicPane): WindowBuffer<T> {
  return pane.state as unknown as WindowBuffer<T>;
}

async function recordsOf<T>(pane: LogicPane): Promise<T[]> {
  const found: T[] = [];
  for await (const [, record] of bufferOf<T>(pane).records.entries()) found.push(record);
  return found;
}

/** The time of a result: the last of the window, or of what made an unbounded one emit. */
function stamp(window: Window, ctx: LogicContext): number {
  return Number.isFinite(window.endMs) ? lastMs(window) : ctx.timestampMs;
}

/** Its functions may be taken apart from it. */
class ProcessContext<K, U> implements WindowContext<K, U> {
  readonly window: Window;
  readonly emit: WindowContext<K, U>['emit'];
  readonly side: WindowContext<K, U>['side'];
  readonly #ctx: LogicContext;

  constructor(ctx: LogicContext, window: Window) {
    this.#ctx = ctx;
    this.window = window;
    this.emit = (value) => ctx.emit(value, stamp(window, ctx));
    this.side = (tag, value) => ctx.side(tag, value);
  }

  get key(): K {
    return this.#ctx.key as K;
  }

  get watermarkMs(): number {
    return this.#ctx.watermarkMs;
  }

  get processingMs(): number {
    return this.#ctx.processingMs;
  }
}

/** One after the other; at once when nothing has to be awaited. */
export function inTurn(first: void | Promise<void>, second: () => void | Promise<void>): void | Promise<void> {
  return isPending(first) ? first.then(second) : second();
}
