import { type MaybePromise, MillraceError } from '@millrace/kernel';
import {
  type Codec,
  float64,
  int64,
  json,
  optional,
  type StateShape,
  struct,
  type ValueHandle,
  value,
} from '@millrace/state';
import { durationMs } from '../api/duration.ts';
import type { LogicPane } from '../api/process.ts';
import type { EarlyFiring, Trigger, TriggerDecision, TriggerMoment } from '../api/trigger.ts';
import { andThen } from './go-on.ts';
import type { TimeDomain } from './keyed-operator.ts';

/** What a trigger keeps with a window. */
interface Remembered {
  readonly state: unknown;
  readonly timerMs: number | undefined;
  readonly processingTimerMs: number | undefined;
}

/** What to do with the window now. */
export interface Firing {
  readonly emit: boolean;
  readonly clear: boolean;
}

const nothing: Firing = { emit: false, clear: false };

/** A trigger at work: keeps its state and its timers in the pane of each window. */
export class RunningTrigger {
  readonly shape: StateShape;
  readonly #trigger: Trigger<unknown, unknown>;

  constructor(trigger: Trigger<unknown, unknown>) {
    this.#trigger = trigger;
    const state = trigger.state as Codec<unknown>;
    this.shape = {
      trigger: value(struct({ state, timerMs: optional(float64), processingTimerMs: optional(float64) })),
    };
  }

  get merges(): boolean {
    return this.#trigger.merge !== undefined;
  }

  get watchesEnd(): boolean {
    return this.#trigger.onEnd !== undefined;
  }

  onRecord(pane: LogicPane, record: unknown, moment: TriggerMoment): MaybePromise<Firing> {
    return andThen(handleOf(pane).get(), (old) => {
      const state = old === undefined ? this.#trigger.create() : old.state;
      return decide(pane, old ?? { state, timerMs: undefined, processingTimerMs: undefined }, {
        state,
        ...this.#trigger.onRecord(record, state, moment),
      });
    });
  }

  /** `undefined` when the trigger did not ask for this time, or no longer does. */
  onTime(pane: LogicPane, domain: TimeDomain, timeMs: number, moment: TriggerMoment): MaybePromise<Firing | undefined> {
    return andThen(handleOf(pane).get(), (old) => {
      if (old === undefined || (domain === 'event' ? old.timerMs : old.processingTimerMs) !== timeMs) return undefined;
      const fired = domain === 'event' ? { ...old, timerMs: undefined } : { ...old, processingTimerMs: undefined };
      return decide(pane, fired, this.#trigger.onTime?.(old.state, moment) ?? {});
    });
  }

  onEnd(pane: LogicPane, moment: TriggerMoment): MaybePromise<Firing> {
    if (this.#trigger.onEnd === undefined) return { emit: true, clear: false };
    return andThen(handleOf(pane).get(), (old) =>
      old === undefined ? nothing : decide(pane, old, this.#trigger.onEnd?.(old.state, moment) ?? {}),
    );
  }

  /** The window goes: so do its timers. */
  clear(pane: LogicPane): void | Promise<void> {
    const handle = handleOf(pane);
    return andThen(handle.get(), (old) => {
      if (old === undefined) return;
      if (old.timerMs !== undefined) pane.timers.delete(old.timerMs);
      if (old.processingTimerMs !== undefined) pane.processingTimers.delete(old.processingTimerMs);
      handle.clear();
    });
  }

  async merge(into: LogicPane, from: LogicPane): Promise<void> {
    const [left, right] = [await handleOf(into).get(), await handleOf(from).get()];
    if (right === undefined) return;
    await this.clear(from);
    const state = left === undefined ? right.state : this.#trigger.merge?.(left.state, right.state);
    decide(into, left ?? { state, timerMs: undefined, processingTimerMs: undefined }, {
      state,
      ...earlier('timerMs', left?.timerMs, right.timerMs),
      ...earlier('processingTimerMs', left?.processingTimerMs, right.processingTimerMs),
    });
  }
}

/** Emits at every `records` records. */
export function everyRecords(records: number): Trigger<unknown, number> {
  if (!Number.isSafeInteger(records) || records < 1) {
    throw new MillraceError('bad-argument', `early.records must be a whole number of at least 1: ${records}`);
  }
  return {
    state: int64,
    create: () => 0,
    onRecord: (_record, count) => (count + 1 >= records ? { state: 0, emit: true } : { state: count + 1 }),
    merge: (left, right) => left + right,
  };
}

/** Emits `everyMs` of the machine's clock after the first record that has not been emitted. */
export function everyDuration(everyMs: number): Trigger<unknown, boolean> {
  if (everyMs <= 0) throw new MillraceError('bad-argument', `early.every must be positive: ${everyMs}`);
  return {
    state: json<boolean>(),
    create: () => false,
    onRecord: (_record, waiting, moment) =>
      waiting ? {} : { state: true, processingTimerMs: moment.processingMs + everyMs },
    onTime: () => ({ state: false, emit: true }),
    merge: (left, right) => left || right,
  };
}

export function earlyTrigger(early: EarlyFiring): Trigger<unknown, unknown> {
  const trigger =
    'records' in early ? everyRecords(early.records) : everyDuration(durationMs(early.every, 'early.every'));
  return trigger as Trigger<unknown, unknown>;
}

function handleOf(pane: LogicPane): ValueHandle<Remembered> {
  return pane.state['trigger'] as unknown as ValueHandle<Remembered>;
}

/** Writes what has changed, and moves the timers. */
function decide(pane: LogicPane, old: Remembered, decision: TriggerDecision<unknown>): Firing {
  const next: Remembered = {
    state: 'state' in decision ? decision.state : old.state,
    timerMs: moved(decision.timerMs, old.timerMs),
    processingTimerMs: moved(decision.processingTimerMs, old.processingTimerMs),
  };
  if (next.timerMs !== old.timerMs) {
    if (old.timerMs !== undefined) pane.timers.delete(old.timerMs);
    if (next.timerMs !== undefined) pane.timers.at(next.timerMs);
  }
  if (next.processingTimerMs !== old.processingTimerMs) {
    if (old.processingTimerMs !== undefined) pane.processingTimers.delete(old.processingTimerMs);
    if (next.processingTimerMs !== undefined) pane.processingTimers.at(next.processingTimerMs);
  }
  handleOf(pane).set(next);
  return { emit: decision.emit === true, clear: decision.clear === true };
}

function moved(wanted: number | 'none' | undefined, old: number | undefined): number | undefined {
  if (wanted === undefined) return old;
  return wanted === 'none' ? undefined : wanted;
}

function earlier(
  name: 'timerMs' | 'processingTimerMs',
  left: number | undefined,
  right: number | undefined,
): Partial<TriggerDecision<unknown>> {
  if (left === undefined && right === undefined) return {};
  return { [name]: Math.min(left ?? Number.POSITIVE_INFINITY, right ?? Number.POSITIVE_INFINITY) };
}
