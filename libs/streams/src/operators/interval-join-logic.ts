import { MillraceError } from '@millrace/kernel';
import { array, keyOf, type MapHandle, map } from '@millrace/state';
import type { IntervalJoinSpec } from '../api/aggregate.ts';
import { durationMs } from '../api/duration.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';

type Side = MapHandle<number, readonly unknown[]>;

/**
 * Each side keeps its records in a map by time, whose keys are in order: the partners of a record are one range. A record
 * of time t can meet partners until the watermark passes t plus how far they may lie ahead; a timer at that
 * time removes everything of the key that is over.
 */
export function intervalJoinLogic<K, L, R, U>(spec: IntervalJoinSpec<K, L, R, U>): KeyedLogic {
  const lowerMs = durationMs(spec.lower, 'lower');
  const upperMs = durationMs(spec.upper, 'upper');
  if (lowerMs > upperMs) throw new MillraceError('bad-argument', `lower (${lowerMs}) is above upper (${upperMs})`);
  /** By input: where the partners' times lie, and how long a record can meet new ones. */
  const bounds = [
    { fromMs: lowerMs, toMs: upperMs, keptMs: Math.max(0, upperMs) },
    { fromMs: -upperMs, toMs: -lowerMs, keptMs: Math.max(0, -lowerMs) },
  ] as const;
  return {
    shape: {
      left: map(keyOf<number>(), array(spec.left)),
      right: map(keyOf<number>(), array(spec.right)),
    },
    isLate: (timestampMs, watermarkMs) => timestampMs <= watermarkMs,
    async onRecord(record, input, ctx) {
      const { fromMs, toMs, keptMs } = bounds[input] as (typeof bounds)[number];
      const sides = sidesOf(ctx);
      const own = sides[input] as Side;
      const timeMs = ctx.timestampMs;
      own.set(timeMs, [...((await own.get(timeMs)) ?? []), record]);
      ctx.timers.at(timeMs + keptMs);
      const range = { from: timeMs + fromMs, until: timeMs + toMs + 1 };
      for await (const [partnerMs, partners] of (sides[1 - input] as Side).entries(range)) {
        for (const partner of partners) {
          const [left, right] = input === 0 ? [record, partner] : [partner, record];
          ctx.emit(spec.pair(left as L, right as R, ctx.key as K), Math.max(timeMs, partnerMs));
        }
      }
    },
    async onTimer(timeMs, ctx) {
      for (const [input, side] of sidesOf(ctx).entries()) {
        const { keptMs } = bounds[input] as (typeof bounds)[number];
        for await (const oldMs of side.keys({ until: timeMs - keptMs + 1 })) side.delete(oldMs);
      }
    },
  };
}

function sidesOf(ctx: LogicContext): readonly Side[] {
  return [ctx.state['left'], ctx.state['right']] as unknown as readonly Side[];
}
