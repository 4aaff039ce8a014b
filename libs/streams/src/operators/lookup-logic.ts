import { isPending, type MaybePromise, Semaphore } from '@millrace/kernel';
import { array, type ValueHandle, value } from '@millrace/state';
import type { AsyncMapOptions, KeyedLookupJoinSpec, LookupJoinSpec } from '../api/async-map.ts';
import { durationMs } from '../api/duration.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import type { AsyncWork } from './async-map-operator.ts';
import { BoundedCall, CallHost, callPolicy } from './bounded-call.ts';

/** One answer for each record. */
export function asyncMapWork<T, U>(fn: AsyncWork['call'], options: AsyncMapOptions<T, U>): AsyncWork {
  return {
    options,
    call: fn,
    fallback: options.fallback as AsyncWork['fallback'],
    finish: (_record, answer, emit) => emit(answer),
  };
}

/** The record with what was found for it. */
export function lookupWork<T, R, U, M extends 'inner' | 'left'>(spec: LookupJoinSpec<T, R, U, M>): AsyncWork {
  const fallback = spec.fallback?.bind(spec) as AsyncWork['fallback'];
  return {
    options: spec,
    call: (record, ctx) => spec.lookup(record as T, ctx),
    fallback,
    finish: (record, found, emit) => {
      if (found !== undefined || spec.kind === 'left') emit(spec.pair(record as T, found as never));
    },
  };
}

/**
 * Lookups by key: the key's lane keeps the order of its results. What was found is kept as a list of at most one, so that
 * nothing found is known, too. Made for one subtask, whose calls share the bound.
 */
export function keyedLookupLogic<K, T, R, U, M extends 'inner' | 'left'>(
  spec: KeyedLookupJoinSpec<K, T, R, U, M>,
): KeyedLogic {
  const policy = callPolicy(spec);
  const permits = new Semaphore(policy.concurrency);
  const { cache } = spec;
  let host: CallHost | undefined;
  const finish = (record: unknown, found: R | undefined, ctx: LogicContext): void => {
    if (found !== undefined || spec.kind === 'left') ctx.emit(spec.pair(record as T, found as never, ctx.key as K));
  };
  const call = (ctx: LogicContext): MaybePromise<R | undefined> =>
    new BoundedCall<R | undefined>(host as CallHost, ctx.timestampMs, (own) => spec.lookup(ctx.key as K, own)).run();
  /** The answer, and whether it may be kept. */
  const ask = async (ctx: LogicContext): Promise<{ found: R | undefined; kept: boolean }> => {
    await permits.take();
    try {
      return { found: await call(ctx), kept: true };
    } catch (error) {
      if (spec.fallback === undefined) throw error;
      return { found: spec.fallback(ctx.key as K, error), kept: false };
    } finally {
      permits.give();
    }
  };
  return {
    shape:
      cache === undefined
        ? {}
        : { found: value(array(cache.codec), { ttl: { durationMs: durationMs(cache.ttl, 'cache.ttl') } }) },
    open: ({ uid, slot }) => {
      host = new CallHost(uid, policy, slot);
    },
    close: () => host?.close(),
    onRecord: (record, _input, ctx) => {
      if (cache === undefined) return ask(ctx).then(({ found }) => finish(record, found, ctx));
      const kept = ctx.state['found'] as unknown as ValueHandle<readonly R[]>;
      const known = kept.get();
      const go = (list: readonly R[] | undefined): void | Promise<void> => {
        if (list !== undefined) return finish(record, list[0], ctx);
        return ask(ctx).then((answer) => {
          if (answer.kept) kept.set(answer.found === undefined ? [] : [answer.found]);
          finish(record, answer.found, ctx);
        });
      };
      return isPending(known) ? known.then(go) : go(known);
    },
  };
}
