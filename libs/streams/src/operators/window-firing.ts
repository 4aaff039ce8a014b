import { isPending } from '@millrace/kernel';
import type { StateShape } from '@millrace/state';
import type { LogicContext, LogicPane } from '../api/process.ts';
import type { TriggerMoment } from '../api/trigger.ts';
import type { Window } from '../api/windows.ts';
import { andThen } from './go-on.ts';
import type { TimeDomain } from './keyed-operator.ts';
import { inTurn, type WindowContents } from './window-contents.ts';
import type { Firing, RunningTrigger } from './window-trigger.ts';

/** What windows of every kind do with a pane: take a record, fire, go. */
export class WindowFiring {
  readonly contents: WindowContents;
  readonly trigger: RunningTrigger | undefined;
  readonly shape: StateShape;

  constructor(contents: WindowContents, trigger: RunningTrigger | undefined) {
    this.contents = contents;
    this.trigger = trigger;
    this.shape = { ...contents.shape, ...trigger?.shape };
  }

  /** Adds a record; `over`: the window has ended, so its result is emitted anew. `armed` sets the timers of a new one. */
  add(
    pane: LogicPane,
    window: Window,
    record: unknown,
    ctx: LogicContext,
    over: boolean,
    armed: (first: boolean) => void,
  ): void | Promise<void> {
    const { trigger } = this;
    return andThen(this.contents.add(pane, record), (first) => {
      armed(first);
      if (trigger === undefined) return over ? this.contents.emit(pane, window, ctx) : undefined;
      return andThen(trigger.onRecord(pane, record, momentOf(window, ctx, ctx.timestampMs)), (firing) =>
        this.#fire(pane, window, ctx, over ? { ...firing, emit: true } : firing),
      );
    });
  }

  /** A timer of the pane: the trigger's, or that of the window's end, or both. */
  timer(pane: LogicPane, window: Window, ctx: LogicContext, at: TimerAt): void | Promise<void> {
    const { trigger } = this;
    if (trigger === undefined) return at.isEnd ? this.contents.emit(pane, window, ctx) : undefined;
    const moment = momentOf(window, ctx, at.timeMs);
    const asked = andThen(trigger.onTime(pane, at.domain, at.timeMs, moment), (firing) =>
      firing === undefined ? undefined : this.#fire(pane, window, ctx, firing),
    );
    if (!at.isEnd) return asked;
    return inTurn(asked, () => andThen(trigger.onEnd(pane, moment), (firing) => this.#fire(pane, window, ctx, firing)));
  }

  /** Everything of the window goes. */
  clear(pane: LogicPane): void | Promise<void> {
    const cleared = this.contents.clear(pane);
    const { trigger } = this;
    return trigger === undefined ? cleared : inTurn(cleared, () => trigger.clear(pane));
  }

  #fire(pane: LogicPane, window: Window, ctx: LogicContext, firing: Firing): void | Promise<void> {
    const emitted = firing.emit ? this.contents.emit(pane, window, ctx) : undefined;
    if (!firing.clear) return emitted;
    return isPending(emitted) ? emitted.then(() => this.contents.clear(pane)) : this.contents.clear(pane);
  }
}

export interface TimerAt {
  readonly domain: TimeDomain;
  readonly timeMs: number;
  /** The window's end has passed with it. */
  readonly isEnd: boolean;
}

function momentOf(window: Window, ctx: LogicContext, timestampMs: number): TriggerMoment {
  const { watermarkMs, processingMs } = ctx;
  return { window, timestampMs, watermarkMs, processingMs };
}
