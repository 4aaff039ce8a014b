import type { OperatorStats, SlotStats } from './slot.ts';
import { SourceTask } from './source-task.ts';
import type { Task } from './task.ts';

/** The largest date that JSON readers can show; stands for a watermark of +∞. */
const endOfTimeMs = 8.64e15;

export function slotStats(subtask: number, tasks: readonly Task[]): SlotStats {
  const operators = tasks.flatMap(operatorStats);
  const isSource = (task: Task): boolean => task instanceof SourceTask;
  const watermarkMs = Math.min(...tasks.map((task) => task.watermarkMs));
  return {
    subtask,
    recordsIn: sum(tasks.filter(isSource).map((task) => task.head.output.recordsOut)),
    recordsOut: sum(operators.filter((one) => one.isSink).map((one) => one.recordsIn)),
    watermarkMs: jsonWatermark(watermarkMs),
    inFlight: sum(operators.map((one) => one.inFlight)),
    buffered: sum(operators.map((one) => one.buffered)),
    ended: tasks.every((task) => task.ended),
    operators,
  };
}

function operatorStats(task: Task): OperatorStats[] {
  return task.chain.members.map(({ uid, operator, output, link }) => ({
    uid,
    recordsIn: link?.recordsIn ?? task.recordsIn,
    recordsOut: output.recordsOut,
    isSink: output.isLast,
    inFlight: operator.inFlight(),
    buffered: operator.buffered(),
    watermarkMs: jsonWatermark(output.isLast ? task.watermarkMs : output.watermarkMs),
    busyMs: Math.round(task.times.busyMs),
    idleMs: Math.round(task.times.idleMs),
    backpressuredMs: Math.round(task.times.backpressuredMs),
  }));
}

function jsonWatermark(watermarkMs: number): number | null {
  return watermarkMs === Number.NEGATIVE_INFINITY ? null : Math.min(watermarkMs, endOfTimeMs);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
