import { MillraceError } from '@millrace/kernel';
import type { WindowOptions } from '../api/aggregate.ts';
import { durationMs } from '../api/duration.ts';
import type { KeyedLogic, LogicContext, LogicPane } from '../api/process.ts';
import { type FixedWindows, lastMs, type Window } from '../api/windows.ts';
import { lastEndAt, namespaceOf, windowNamed, windowsAt } from './fixed-windows.ts';
import type { TimeDomain } from './keyed-operator.ts';
import { inTurn } from './window-contents.ts';
import type { WindowFiring } from './window-firing.ts';

/**
 * Windows whose ends are known when a record comes. A window [start, end) of event time is over when the watermark has
 * reached `end - 1`: it emits then, takes late records for the allowed lateness, emitting anew at each, and is
 * cleared. One of processing time is over when the clock has reached `end`, or the input has ended. All of it lives in
 * state and timers of (key, window), so a restored window goes on as if nothing had happened.
 */
export function fixedWindowLogic<T>(
  windows: FixedWindows,
  options: WindowOptions<T>,
  firing: WindowFiring,
): KeyedLogic {
  return windows.time === 'event' ? eventWindows(windows, options, firing) : processingWindows(windows, firing);
}

function eventWindows<T>(windows: FixedWindows, options: WindowOptions<T>, firing: WindowFiring): KeyedLogic {
  const latenessMs = latenessOf(options);
  const add = (pane: LogicPane, window: Window, record: unknown, ctx: LogicContext): void | Promise<void> => {
    const over = lastMs(window) <= ctx.watermarkMs;
    return firing.add(pane, window, record, ctx, over, (first) => {
      if (!first) return;
      if (!over) pane.timers.at(lastMs(window));
      if (latenessMs > 0) pane.timers.at(lastMs(window) + latenessMs);
    });
  };
  const timer = (timeMs: number, ctx: LogicContext, domain: TimeDomain): void | Promise<void> => {
    const window = windowNamed(windows, ctx.namespace as number);
    const isEnd = domain === 'event' && timeMs === lastMs(window);
    const fired = firing.timer(ctx, window, ctx, { domain, timeMs, isEnd });
    if (domain === 'processing' || timeMs !== lastMs(window) + latenessMs) return fired;
    return inTurn(fired, () => firing.clear(ctx));
  };
  const common: KeyedLogic = {
    shape: firing.shape,
    late: options.late?.name,
    isLate: (timestampMs, watermarkMs) => lastEndAt(windows, timestampMs) - 1 + latenessMs <= watermarkMs,
    onRecord: (record, _input, ctx) => {
      let pending: void | Promise<void> = undefined;
      for (const window of windowsAt(windows, ctx.timestampMs)) {
        if (lastMs(window) + latenessMs <= ctx.watermarkMs) continue;
        pending = inTurn(pending, () => add(ctx.in(namespaceOf(windows, window)), window, record, ctx));
      }
      return pending;
    },
    onTimer: (timeMs, ctx) => timer(timeMs, ctx, 'event'),
    onProcessingTimer: (timeMs, ctx) => timer(timeMs, ctx, 'processing'),
  };
  if (windows.kind !== 'tumbling') return common;
  // One window for each record: the call itself is its pane.
  return {
    ...common,
    namespaceOf: (timestampMs) => namespaceOf(windows, windowsAt(windows, timestampMs)[0] as Window),
    onRecord: (record, _input, ctx) => add(ctx, windowNamed(windows, ctx.namespace as number), record, ctx),
  };
}

/** The clock is asked when the handler runs, so a record never meets a window that its timer has closed. */
function processingWindows(windows: FixedWindows, firing: WindowFiring): KeyedLogic {
  return {
    shape: firing.shape,
    closesAtEnd: true,
    onRecord: (record, _input, ctx) => {
      let pending: void | Promise<void> = undefined;
      for (const window of windowsAt(windows, ctx.processingMs)) {
        pending = inTurn(pending, () => {
          const pane = ctx.in(namespaceOf(windows, window));
          return firing.add(pane, window, record, ctx, false, (first) => {
            if (first) pane.processingTimers.at(window.endMs);
          });
        });
      }
      return pending;
    },
    onTimer: (timeMs, ctx) =>
      firing.timer(ctx, windowNamed(windows, ctx.namespace as number), ctx, {
        domain: 'event',
        timeMs,
        isEnd: false,
      }),
    onProcessingTimer: (timeMs, ctx) => {
      const window = windowNamed(windows, ctx.namespace as number);
      const isEnd = timeMs === window.endMs;
      const fired = firing.timer(ctx, window, ctx, { domain: 'processing', timeMs, isEnd });
      return isEnd ? inTurn(fired, () => firing.clear(ctx)) : fired;
    },
  };
}

export function latenessOf<T>(options: WindowOptions<T>): number {
  const latenessMs = durationMs(options.allowedLateness ?? 0, 'allowedLateness');
  if (latenessMs < 0) throw new MillraceError('bad-argument', `allowedLateness must not be negative: ${latenessMs}`);
  return latenessMs;
}
