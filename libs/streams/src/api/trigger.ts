import type { Codec } from '@millrace/state';
import type { Duration } from './duration.ts';
import type { Window } from './windows.ts';

/** What a trigger is asked about. */
export interface TriggerMoment {
  readonly window: Window;
  /** Event time of the record at hand, or the time of the timer. */
  readonly timestampMs: number;
  readonly watermarkMs: number;
  /** The machine's clock. */
  readonly processingMs: number;
}

/** What a trigger wants. What is not said stays as it is. */
export interface TriggerDecision<S> {
  /** What it remembers from now on. */
  readonly state?: S;
  /** Emit the window as it is. */
  readonly emit?: boolean;
  /** Forget the window's records, after it has been emitted if that is asked, too. */
  readonly clear?: boolean;
  /** Ask `onTime` when the watermark has reached this time; in place of the time asked before. `none`: do not. */
  readonly timerMs?: number | 'none';
  /** The same with the machine's clock. */
  readonly processingTimerMs?: number | 'none';
}

/**
 * Says when a window emits, beside its end. Its functions are pure: they are told what happened and what they remember,
 * and return what to do; the state is kept with the window, and dropped with it.
 */
export interface Trigger<T, S> {
  readonly state: Codec<S>;
  create(): S;
  onRecord(record: T, state: S, moment: TriggerMoment): TriggerDecision<S>;
  /** A time that it asked for has come. */
  onTime?(state: S, moment: TriggerMoment): TriggerDecision<S>;
  /** The window is over: default is to emit. Of a global window it is asked when the input ends; default is nothing. */
  onEnd?(state: S, moment: TriggerMoment): TriggerDecision<S>;
  /** Two sessions become one; sessions need it. The earlier of the times that were asked for stays. */
  merge?(left: S, right: S): S;
}

/** Emits a window before its end, as often as is said; its end emits it as always. */
export type EarlyFiring =
  | { /** At every so many records. */ readonly records: number }
  | {
      /** By the machine's clock, so long after the first record that has not been emitted. */ readonly every: Duration;
    };

/** A trigger, with the types of its functions taken from its `state`. */
export function trigger<T, S>(functions: Trigger<T, S>): Trigger<T, S> {
  return functions;
}
