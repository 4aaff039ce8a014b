import { MillraceError } from '@millrace/kernel';
import type { WindowOptions } from '../api/aggregate.ts';
import type { KeyedLogic } from '../api/process.ts';
import type { Trigger } from '../api/trigger.ts';
import type { CountWindows, GlobalWindows, Windows } from '../api/windows.ts';
import { countTrigger, globalWindowLogic, slidingCountLogic } from './global-window-logic.ts';
import { sessionWindowLogic } from './session-window-logic.ts';
import type { WindowContents } from './window-contents.ts';
import { WindowFiring } from './window-firing.ts';
import { fixedWindowLogic } from './window-logic.ts';
import { earlyTrigger, RunningTrigger } from './window-trigger.ts';

/** The logic of windows of any kind; what does not go together is refused in words. */
export function anyWindowLogic<T>(
  windows: Windows<T>,
  options: WindowOptions<T>,
  contents: WindowContents,
): KeyedLogic {
  const name = options.uid ?? 'window';
  const refuse = (message: string): never => {
    throw new MillraceError('job-graph', `${name}: ${message}`);
  };
  if (options.early !== undefined && options.trigger !== undefined) refuse('it has both early and a trigger');
  if (windows.kind === 'count' || windows.kind === 'global') return unboundedLogic(windows, options, contents, refuse);
  if (windows.time === 'processing' && (options.allowedLateness !== undefined || options.late !== undefined)) {
    refuse('no record is late for windows of processing time; they take no allowedLateness and no late');
  }
  const firing = new WindowFiring(contents, triggerOf(options));
  if (windows.kind !== 'session') return fixedWindowLogic(windows, options, firing);
  if (contents.merge === undefined) refuse('sessions may become one; the aggregate needs merge');
  if (firing.trigger?.merges === false) refuse('sessions may become one; the trigger needs merge');
  return sessionWindowLogic(windows, options, firing);
}

function unboundedLogic<T>(
  windows: CountWindows | GlobalWindows,
  options: WindowOptions<T>,
  contents: WindowContents,
  refuse: (message: string) => never,
): KeyedLogic {
  for (const option of ['allowedLateness', 'late', 'early'] as const) {
    if (options[option] !== undefined) refuse(`${windows.kind} windows have no end in time; they take no ${option}`);
  }
  if (windows.kind === 'global') {
    const trigger = triggerOf(options) ?? refuse('a global window emits only when a trigger says so');
    return globalWindowLogic(new WindowFiring(contents, trigger));
  }
  if (options.trigger !== undefined) refuse('count windows have a trigger of their own; use globalWindow()');
  if (windows.every !== windows.size) return slidingCountLogic(windows, contents);
  return globalWindowLogic(
    new WindowFiring(contents, new RunningTrigger(countTrigger(windows) as Trigger<unknown, unknown>)),
  );
}

function triggerOf<T>({ early, trigger }: WindowOptions<T>): RunningTrigger | undefined {
  if (trigger !== undefined) return new RunningTrigger(trigger as Trigger<unknown, unknown>);
  return early === undefined ? undefined : new RunningTrigger(earlyTrigger(early));
}
