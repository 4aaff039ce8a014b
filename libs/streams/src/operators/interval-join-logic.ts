import { MillraceError } from '@millrace/kernel';
import { array, bool, type Codec, keyOf, type MapHandle, map, struct } from '@millrace/state';
import { durationMs } from '../api/duration.ts';
import type { IntervalJoinSpec, JoinKind } from '../api/joins.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';

interface Waiting {
  readonly record: unknown;
  /** It has met a partner; kept only where a record without one is emitted. */
  readonly matched: boolean;
}

type Side = MapHandle<number, readonly Waiting[]>;

interface Bounds {
  /** Where the partners' times lie, relative to the record's. */
  readonly fromMs: number;
  readonly toMs: number;
  /** How long a record can meet new partners: behind its time plus this, as the watermark goes. */
  readonly keptMs: number;
  /** A record that met none is emitted. */
  readonly outer: boolean;
}

/**
 * Each side keeps its records in a map by time, whose keys are in order: the partners of a record are one range. A record
 * of time t can meet partners until the watermark passes t plus how far they may lie ahead, plus the allowed lateness; a
 * timer at that time removes everything of the key that is over, and emits what has met no partner where the
 * join is an outer one. Such a result has the time of the timer, so that it is never late.
 */
export function intervalJoinLogic<K, L, R, U, M extends JoinKind>(spec: IntervalJoinSpec<K, L, R, U, M>): KeyedLogic {
  const bounds = boundsOf(spec);
  const latenessMs = durationMs(spec.allowedLateness ?? 0, 'allowedLateness');
  const pair = (input: number, own: unknown, partner: unknown, ctx: LogicContext): U => {
    const [left, right] = input === 0 ? [own, partner] : [partner, own];
    return spec.pair(left as never, right as never, ctx.key as K);
  };
  return {
    shape: {
      left: map(keyOf<number>(), waiting(spec.left)),
      right: map(keyOf<number>(), waiting(spec.right)),
    },
    lateByInput: [spec.late?.left?.name, spec.late?.right?.name],
    isLate: (timestampMs, watermarkMs) => timestampMs + latenessMs <= watermarkMs,
    async onRecord(record, input, ctx) {
      const { fromMs, toMs, keptMs } = bounds[input] as Bounds;
      const partnersOuter = (bounds[1 - input] as Bounds).outer;
      const sides = sidesOf(ctx);
      const [own, others] = [sides[input] as Side, sides[1 - input] as Side];
      const timeMs = ctx.timestampMs;
      ctx.timers.at(timeMs + keptMs);
      let matched = false;
      for await (const [partnerMs, partners] of others.entries({ from: timeMs + fromMs, until: timeMs + toMs + 1 })) {
        matched = true;
        for (const partner of partners) {
          ctx.emit(pair(input, record, partner.record, ctx), Math.max(timeMs, partnerMs));
        }
        if (partnersOuter && partners.some((partner) => !partner.matched)) {
          others.set(
            partnerMs,
            partners.map((partner) => ({ record: partner.record, matched: true })),
          );
        }
      }
      own.set(timeMs, [...((await own.get(timeMs)) ?? []), { record, matched }]);
    },
    async onTimer(timerMs, ctx) {
      for (const [input, side] of sidesOf(ctx).entries()) {
        const { keptMs, outer } = bounds[input] as Bounds;
        for await (const [timeMs, over] of side.entries({ until: timerMs - keptMs + 1 })) {
          side.delete(timeMs);
          if (!outer) continue;
          for (const { record, matched } of over) if (!matched) ctx.emit(pair(input, record, undefined, ctx));
        }
      }
    },
  };
}

/** By input. */
function boundsOf<K, L, R, U, M extends JoinKind>(spec: IntervalJoinSpec<K, L, R, U, M>): readonly Bounds[] {
  const lowerMs = durationMs(spec.lower, 'lower');
  const upperMs = durationMs(spec.upper, 'upper');
  const latenessMs = durationMs(spec.allowedLateness ?? 0, 'allowedLateness');
  if (lowerMs > upperMs) throw new MillraceError('bad-argument', `lower (${lowerMs}) is above upper (${upperMs})`);
  if (latenessMs < 0) throw new MillraceError('bad-argument', `allowedLateness must not be negative: ${latenessMs}`);
  const { kind = 'inner' as JoinKind } = spec;
  return [
    {
      fromMs: lowerMs,
      toMs: upperMs,
      keptMs: Math.max(0, upperMs) + latenessMs,
      outer: kind === 'left' || kind === 'full',
    },
    {
      fromMs: -upperMs,
      toMs: -lowerMs,
      keptMs: Math.max(0, -lowerMs) + latenessMs,
      outer: kind === 'right' || kind === 'full',
    },
  ];
}

function waiting<T>(record: Codec<T>): Codec<readonly Waiting[]> {
  return array(struct({ record, matched: bool })) as unknown as Codec<readonly Waiting[]>;
}

function sidesOf(ctx: LogicContext): readonly Side[] {
  return [ctx.state['left'], ctx.state['right']] as unknown as readonly Side[];
}
