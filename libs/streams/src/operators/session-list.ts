import { array, type Codec, float64, optional, struct } from '@millrace/state';
import type { Window } from '../api/windows.ts';

/** One session of a key. */
export interface Session extends Window {
  /** Names its contents in state: the time of the record that began it. It never begins after it, nor ends before. */
  readonly id: number;
  /** Its one pending timer; undefined for none. */
  readonly timerMs: number | undefined;
  /** The end at which it has emitted; it emits again when it has grown beyond. */
  readonly firedEndMs: number | undefined;
}

export const sessionsCodec: Codec<readonly Session[]> = array(
  struct({
    id: float64,
    startMs: float64,
    endMs: float64,
    timerMs: optional(float64),
    firedEndMs: optional(float64),
  }),
) as Codec<readonly Session[]>;

export interface Meeting {
  /** What the sessions that a record meets, and it, become: the first of them, or a new one. */
  readonly into: Session;
  readonly isNew: boolean;
  /** The other sessions that it connects. */
  readonly absorbed: readonly Session[];
  /** Those that it does not touch. */
  readonly others: readonly Session[];
}

/** Where a record of `timeMs` that holds its session open for `gapMs` belongs. Pure. */
export function meet(sessions: readonly Session[], timeMs: number, gapMs: number): Meeting {
  const endMs = timeMs + gapMs;
  const met: Session[] = [];
  const others: Session[] = [];
  for (const one of sessions) (one.startMs < endMs && timeMs < one.endMs ? met : others).push(one);
  const [first, ...absorbed] = met;
  if (first === undefined) {
    const into: Session = { id: timeMs, startMs: timeMs, endMs, timerMs: undefined, firedEndMs: undefined };
    return { into, isNew: true, absorbed, others };
  }
  const startMs = Math.min(timeMs, ...met.map((one) => one.startMs));
  const into = { ...first, startMs, endMs: Math.max(endMs, ...met.map((one) => one.endMs)) };
  return { into, isNew: false, absorbed, others };
}
