import type { SlotContext } from './slot.ts';
import type { Task } from './task.ts';

/** Gauges over plain fields, read at collection only. Returns what stops them. */
export function registerSlotMetrics(context: SlotContext, tasks: readonly Task[]): Array<() => void> {
  const { metrics } = context.telemetry;
  const stops: Array<() => void> = [];
  for (const task of tasks) {
    const labels = { job: context.job, operator: task.head.uid, subtask: context.subtask };
    const gauge = (name: string, help: string, read: () => number): void => {
      stops.push(metrics.gauge(`millrace_subtask_${name}`, help, read, labels));
    };
    gauge('busy_ms', 'Time at work since the start, and waiting for operators', () => task.times.busyMs);
    gauge('idle_ms', 'Time without input, or without the thread, since the start', () => task.times.idleMs);
    gauge('backpressured_ms', 'Time waiting for full outputs since the start', () => task.times.backpressuredMs);
    gauge('records_in', 'Records taken from inputs since the start', () => task.recordsIn);
    gauge('in_flight', 'Records in flight in the head operator', () => task.head.operator.inFlight());
    gauge('buffered', 'Records in the blocking buffer of the head operator', () => task.head.operator.buffered());
    gauge('watermark_lag_ms', 'Wall time minus watermark; 0 before the first and after the last', () => {
      const { watermarkMs } = task;
      return Number.isFinite(watermarkMs) ? context.clock.nowMs() - watermarkMs : 0;
    });
  }
  return stops;
}
