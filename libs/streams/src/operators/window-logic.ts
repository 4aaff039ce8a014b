import { MillraceError } from '@millrace/kernel';
import { value } from '@millrace/state';
import type { WindowAggregateSpec, WindowOptions } from '../api/aggregate.ts';
import { durationMs } from '../api/duration.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import { type TumblingWindows, windowStart } from '../api/windows.ts';
import { accumulatorOf } from './aggregate-logic.ts';
import { goOn } from './go-on.ts';

/**
 * Tumbling windows of event time: one accumulator per (key, window start) and two timers. A window [start, end) is over
 * when the watermark has reached `end - 1`: it emits then, takes late records for the allowed lateness, emitting
 * anew at each, and is cleared. Records that come later still go to the side output. All of it lives in state and
 * timers, so a restored window goes on as if nothing had happened.
 */
export function windowLogic<K, T, A, U>(
  windows: TumblingWindows,
  options: WindowOptions<T>,
  spec: WindowAggregateSpec<K, T, A, U>,
): KeyedLogic {
  const latenessMs = durationMs(options.allowedLateness ?? 0, 'allowedLateness');
  if (latenessMs < 0) throw new MillraceError('bad-argument', `allowedLateness must not be negative: ${latenessMs}`);
  const { sizeMs } = windows;
  const lastMs = (startMs: number): number => startMs + sizeMs - 1;
  const emit = (accumulator: A, startMs: number, ctx: LogicContext): void => {
    const window = { startMs, endMs: startMs + sizeMs };
    ctx.emit(spec.result(accumulator, ctx.key as K, window), lastMs(startMs));
  };
  return {
    shape: { accumulator: value(spec.accumulator) },
    late: options.late?.name,
    namespaceOf: (timestampMs) => windowStart(windows, timestampMs),
    isLate: (timestampMs, watermarkMs) => lastMs(windowStart(windows, timestampMs)) + latenessMs <= watermarkMs,
    onRecord: (record, _input, ctx) => {
      const handle = accumulatorOf<A>(ctx);
      return goOn(handle.get(), (old) => {
        const startMs = ctx.namespace as number;
        const next = spec.add(old ?? spec.create(), record as T);
        handle.set(next);
        const over = lastMs(startMs) <= ctx.watermarkMs;
        if (old === undefined) {
          if (!over) ctx.timers.at(lastMs(startMs));
          if (latenessMs > 0) ctx.timers.at(lastMs(startMs) + latenessMs);
        }
        if (over) emit(next, startMs, ctx);
      });
    },
    onTimer: (timeMs, ctx) => {
      const handle = accumulatorOf<A>(ctx);
      const startMs = ctx.namespace as number;
      if (timeMs !== lastMs(startMs)) return handle.clear();
      return goOn(handle.get(), (accumulator) => {
        if (accumulator !== undefined) emit(accumulator, startMs, ctx);
        if (latenessMs === 0) handle.clear();
      });
    },
  };
}
