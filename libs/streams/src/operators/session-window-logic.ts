import { type ValueHandle, value } from '@millrace/state';
import type { WindowOptions } from '../api/aggregate.ts';
import type { KeyedLogic, LogicContext, LogicPane, Timers } from '../api/process.ts';
import { lastMs, type SessionWindows, type Window } from '../api/windows.ts';
import { goOn } from './go-on.ts';
import type { TimeDomain } from './keyed-operator.ts';
import { type Meeting, meet, type Session, sessionsCodec } from './session-list.ts';
import { inTurn } from './window-contents.ts';
import type { WindowFiring } from './window-firing.ts';
import { latenessOf } from './window-logic.ts';

/**
 * Sessions. The list of a key's open sessions is one value; the contents of each are in the namespace of its id. A
 * record that connects sessions moves their contents, and what their triggers remember, into the first of them. A
 * session has one pending timer: when it fires before the end, which has moved meanwhile, it is set anew, so that a
 * record that only makes a session longer touches no timer.
 */
export function sessionWindowLogic<T>(
  windows: SessionWindows<T>,
  options: WindowOptions<T>,
  firing: WindowFiring,
): KeyedLogic {
  const sessions = new SessionLogic(windows as SessionWindows<unknown>, latenessOf(options), firing);
  return {
    shape: { sessions: value(sessionsCodec), ...firing.shape },
    late: options.late?.name,
    closesAtEnd: windows.time === 'processing',
    onRecord: (record, _input, ctx) => sessions.record(record, ctx),
    onTimer: (timeMs, ctx) => sessions.timer(timeMs, ctx, 'event'),
    onProcessingTimer: (timeMs, ctx) => sessions.timer(timeMs, ctx, 'processing'),
  };
}

class SessionLogic {
  readonly #windows: SessionWindows<unknown>;
  readonly #latenessMs: number;
  readonly #firing: WindowFiring;

  constructor(windows: SessionWindows<unknown>, latenessMs: number, firing: WindowFiring) {
    this.#windows = windows;
    this.#latenessMs = windows.time === 'event' ? latenessMs : 0;
    this.#firing = firing;
  }

  record(record: unknown, ctx: LogicContext): void | Promise<void> {
    const timeMs = this.#windows.time === 'event' ? ctx.timestampMs : ctx.processingMs;
    const gapMs = this.#windows.gapMs(record);
    return goOn(listOf(ctx).get(), (list = []) => {
      const meeting = meet(list, timeMs, gapMs);
      // Judged with what it is connected to: a late record of a session that is still kept is not lost.
      if (this.#isOver(meeting.into, ctx, this.#latenessMs)) return ctx.late();
      return this.#take(record, meeting, ctx);
    });
  }

  /** A timer of a session or of its trigger; of one that has become part of another: nothing. */
  timer(timeMs: number, ctx: LogicContext, domain: TimeDomain): void | Promise<void> {
    const list = listOf(ctx.in(undefined));
    return goOn(list.get(), (sessions = []) => {
      const session = sessions.find((one) => one.id === ctx.namespace);
      if (session === undefined) return;
      const isOwn = domain === this.#windows.time && session.timerMs === timeMs;
      const isEnd = isOwn && timeMs >= this.#endTimer(session) && session.firedEndMs !== session.endMs;
      const fired = this.#firing.timer(ctx, windowOf(session), ctx, { domain, timeMs, isEnd });
      if (!isOwn) return fired;
      return inTurn(fired, () => {
        const others = sessions.filter((one) => one !== session);
        const endMs = this.#endTimer(session);
        if (timeMs >= endMs + this.#latenessMs) {
          save(list, others);
          return this.#firing.clear(ctx);
        }
        const timerMs = timeMs >= endMs ? endMs + this.#latenessMs : endMs;
        this.#timersOf(ctx).at(timerMs);
        save(list, [...others, { ...session, timerMs, firedEndMs: isEnd ? session.endMs : session.firedEndMs }]);
      });
    });
  }

  #take(record: unknown, { into, absorbed, others }: Meeting, ctx: LogicContext): void | Promise<void> {
    const pane = ctx.in(into.id);
    const merged = absorbed.length === 0 ? undefined : this.#absorb(pane, absorbed, ctx);
    return inTurn(merged, () => {
      const over = this.#isOver(into, ctx, 0);
      const timerMs = this.#moveTimer(pane, into.timerMs, this.#endTimer(into) + (over ? this.#latenessMs : 0));
      save(listOf(ctx), [...others, { ...into, timerMs, firedEndMs: over ? into.endMs : into.firedEndMs }]);
      return this.#firing.add(pane, windowOf(into), record, ctx, over, () => undefined);
    });
  }

  async #absorb(pane: LogicPane, absorbed: readonly Session[], ctx: LogicContext): Promise<void> {
    const { contents, trigger } = this.#firing;
    for (const session of absorbed) {
      const from = ctx.in(session.id);
      if (session.timerMs !== undefined) this.#timersOf(from).delete(session.timerMs);
      await contents.merge?.(pane, from);
      await trigger?.merge(pane, from);
    }
  }

  /** Whether its end has passed by so much. By processing time it never has: its timer is what ends it. */
  #isOver(session: Session, ctx: LogicContext, byMs: number): boolean {
    return this.#windows.time === 'event' && lastMs(session) + byMs <= ctx.watermarkMs;
  }

  #endTimer(session: Session): number {
    return this.#windows.time === 'event' ? lastMs(session) : session.endMs;
  }

  #timersOf(pane: LogicPane): Timers {
    return this.#windows.time === 'event' ? pane.timers : pane.processingTimers;
  }

  /** A timer that comes too early is set anew when it fires; one that would come too late is replaced. */
  #moveTimer(pane: LogicPane, oldMs: number | undefined, wantedMs: number): number {
    if (oldMs !== undefined && oldMs <= wantedMs) return oldMs;
    if (oldMs !== undefined) this.#timersOf(pane).delete(oldMs);
    this.#timersOf(pane).at(wantedMs);
    return wantedMs;
  }
}

/** What handlers see of it. */
function windowOf({ startMs, endMs }: Session): Window {
  return { startMs, endMs };
}

function listOf(pane: LogicPane): ValueHandle<readonly Session[]> {
  return pane.state['sessions'] as unknown as ValueHandle<readonly Session[]>;
}

function save(list: ValueHandle<readonly Session[]>, sessions: readonly Session[]): void {
  if (sessions.length === 0) list.clear();
  else list.set(sessions);
}
