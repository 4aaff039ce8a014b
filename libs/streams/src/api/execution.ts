import { MillraceError } from '@millrace/kernel';
import type { OperatorOptions } from './process.ts';

/** How the records of one subtask of a keyed operator overlap. */
export interface AsynchronousExecution {
  /** Records in flight or waiting for their key, at most. Default: the job's setting. */
  readonly inFlightLimit?: number;
  /**
   * `serial` (default): no record starts until the watermark before it has left, so timers see exactly the records
   * before it. `parallel`: later records may start, which hides the latency of timers; these may then see what the
   * later records did.
   */
  readonly watermarks?: 'serial' | 'parallel';
}

/** `synchronous`: each record is finished before the next one starts, whatever its key, and however long it waits. */
export type Execution = 'synchronous' | AsynchronousExecution;

/** Options that every operator after `keyBy` takes. State written under one execution restores under every other. */
export interface KeyedOptions extends OperatorOptions {
  /** Default: asynchronous, with the job's in-flight limit and serial watermarks. */
  readonly execution?: Execution | undefined;
}

/** What the operator host asks for. */
export interface ExecutionSettings {
  readonly inFlightLimit: number;
  readonly watermarks: 'serial' | 'parallel';
}

export function executionSettings(execution: Execution | undefined, inFlightLimit: number): ExecutionSettings {
  if (execution === 'synchronous') return { inFlightLimit: 1, watermarks: 'serial' };
  return {
    inFlightLimit: execution?.inFlightLimit ?? inFlightLimit,
    watermarks: execution?.watermarks ?? 'serial',
  };
}

/** What the types cannot see is refused while the job is built, naming the operator. */
export function checkExecution(operator: string, execution: unknown): void {
  if (execution === undefined || execution === 'synchronous') return;
  const refuse = (message: string): never => {
    throw new MillraceError('job-graph', `${operator}: ${message}`);
  };
  if (typeof execution !== 'object' || execution === null) {
    return refuse(`execution is ${JSON.stringify(execution)}; it is 'synchronous' or { inFlightLimit, watermarks }`);
  }
  for (const name of Object.keys(execution)) {
    if (name !== 'inFlightLimit' && name !== 'watermarks') refuse(`execution has no option ${name}`);
  }
  const { inFlightLimit, watermarks } = execution as { inFlightLimit?: unknown; watermarks?: unknown };
  if (inFlightLimit !== undefined && !(Number.isSafeInteger(inFlightLimit) && (inFlightLimit as number) >= 1)) {
    refuse(`execution.inFlightLimit is ${JSON.stringify(inFlightLimit)}; it is a whole number of at least 1`);
  }
  if (watermarks !== undefined && watermarks !== 'serial' && watermarks !== 'parallel') {
    refuse(`execution.watermarks is ${JSON.stringify(watermarks)}; it is 'serial' or 'parallel'`);
  }
}
