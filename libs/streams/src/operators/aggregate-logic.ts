import { type Codec, type StateOptions, type ValueHandle, value } from '@millrace/state';
import type { AggregateSpec } from '../api/aggregate.ts';
import type { Duration } from '../api/duration.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import { goOn } from './go-on.ts';
import { ttlOption } from './join-logic.ts';

/** A running aggregate in one value state. */
export function aggregateLogic<K, T, A, U>(spec: AggregateSpec<K, T, A, U>): KeyedLogic {
  return {
    shape: { accumulator: value(spec.accumulator, ttlOf(spec)) },
    onRecord: (record, _input, ctx) => {
      const handle = accumulatorOf<A>(ctx);
      return goOn(handle.get(), (old) => {
        const next = spec.add(old ?? spec.create(), record as T);
        handle.set(next);
        ctx.emit(spec.result(next, ctx.key as K));
      });
    },
  };
}

/** A running combination: the accumulator is a record. */
export function reduceLogic<T>(
  combine: (a: T, b: T) => T,
  codec: Codec<T>,
  options: { readonly ttl?: Duration } = {},
): KeyedLogic {
  return {
    shape: { accumulator: value(codec, ttlOf(options)) },
    onRecord: (record, _input, ctx) => {
      const handle = accumulatorOf<T>(ctx);
      return goOn(handle.get(), (old) => {
        const next = old === undefined ? (record as T) : combine(old, record as T);
        handle.set(next);
        ctx.emit(next);
      });
    },
  };
}

/** Without a time nothing ends. */
function ttlOf(options: { readonly ttl?: Duration }): StateOptions {
  return options.ttl === undefined ? {} : { ttl: ttlOption(options) };
}

export function accumulatorOf<A>(ctx: LogicContext): ValueHandle<A> {
  return ctx.state['accumulator'] as unknown as ValueHandle<A>;
}
