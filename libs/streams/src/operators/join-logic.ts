import { MillraceError } from '@millrace/kernel';
import { type MapHandle, map, string, type TtlOptions } from '@millrace/state';
import { type Duration, durationMs } from '../api/duration.ts';
import type { JoinSide, JoinSpec } from '../api/joins.ts';
import type { KeyedLogic } from '../api/process.ts';
import { goOn } from './go-on.ts';

const only = '';

/**
 * Inner join by key: each side keeps its records in a map with a time to live and, when a record comes, meets the
 * other side's. A pair is emitted once, by whichever record comes second.
 */
export function joinLogic<K, L, R, U>(spec: JoinSpec<K, L, R, U>): KeyedLogic {
  const ttl = ttlOption(spec);
  const sides = [spec.left, spec.right] as readonly JoinSide<unknown>[];
  const idOf = sides.map((side) => side.id ?? ((): string => only));
  return {
    shape: {
      left: map(string, spec.left.codec, { ttl }),
      right: map(string, spec.right.codec, { ttl }),
    },
    onRecord: (record, input, ctx) => {
      const maps = [ctx.state['left'], ctx.state['right']] as unknown as readonly MapHandle<string, unknown>[];
      const other = maps[1 - input] as MapHandle<string, unknown>;
      const meet = (partner: unknown): void => {
        const [left, right] = input === 0 ? [record, partner] : [partner, record];
        ctx.emit(spec.pair(left as L, right as R, ctx.key as K));
      };
      maps[input]?.set((idOf[input] as (record: unknown) => string)(record), record);
      if (sides[1 - input]?.id === undefined) {
        return goOn(other.get(only), (partner) => {
          if (partner !== undefined) meet(partner);
        });
      }
      return meetAll(other, meet);
    },
  };
}

async function meetAll(other: MapHandle<string, unknown>, meet: (partner: unknown) => void): Promise<void> {
  for await (const [, partner] of other.entries()) meet(partner);
}

/** The time to live of what waits for partners; the default of the state where none is named. */
export function ttlOption(spec: { readonly ttl?: Duration }): TtlOptions {
  if (spec.ttl === undefined) return {};
  const ttlMs = durationMs(spec.ttl, 'ttl');
  if (ttlMs <= 0) throw new MillraceError('bad-argument', `ttl must be positive: ${ttlMs}`);
  return { durationMs: ttlMs };
}
