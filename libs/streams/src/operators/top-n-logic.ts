import { MillraceError } from '@millrace/kernel';
import { array, type ValueHandle, value } from '@millrace/state';
import type { KeyedLogic } from '../api/process.ts';
import type { TopNSpec } from '../api/ranking.ts';
import { goOn } from './go-on.ts';
import { ttlOption } from './join-logic.ts';

/** Best first. */
interface Ranking<T> {
  readonly n: number;
  readonly compare: (a: T, b: T) => number;
  readonly id?: ((record: T) => string) | undefined;
}

/** The list with the record in its place; the same list when the record changes nothing. */
export function ranked<T>(best: readonly T[], record: T, { n, compare, id }: Ranking<T>): readonly T[] {
  const others = id === undefined ? best : without(best, id(record), id);
  let low = 0;
  let high = others.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(record, others[middle] as T) < 0) high = middle;
    else low = middle + 1;
  }
  if (low >= n) return others;
  const next = [...others.slice(0, low), record, ...others.slice(low)];
  next.length = Math.min(next.length, n);
  return next;
}

function without<T>(best: readonly T[], gone: string, id: (record: T) => string): readonly T[] {
  const at = best.findIndex((one) => id(one) === gone);
  return at < 0 ? best : best.toSpliced(at, 1);
}

/** The best records of a key in one value, which is emitted when it changes. */
export function topNLogic<K, T, U>(spec: TopNSpec<K, T, U>): KeyedLogic {
  if (!Number.isSafeInteger(spec.n) || spec.n < 1) {
    throw new MillraceError('bad-argument', `n is ${spec.n}; it has to be a whole number of at least 1`);
  }
  const ranking: Ranking<T> = { n: spec.n, compare: (a, b) => spec.compare(a, b), id: spec.id };
  const ttl = spec.ttl === undefined ? {} : { ttl: ttlOption(spec) };
  return {
    shape: { best: value(array(spec.codec), ttl) },
    onRecord: (record, _input, ctx) => {
      const handle = ctx.state['best'] as unknown as ValueHandle<readonly T[]>;
      return goOn(handle.get(), (old = []) => {
        const best = ranked(old, record as T, ranking);
        if (best === old) return;
        handle.set(best);
        ctx.emit(spec.result(best, ctx.key as K));
      });
    },
  };
}
