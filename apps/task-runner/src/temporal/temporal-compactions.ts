/**
 * Compactions as standalone activities on the queue of the compactors: started by the runner, without a workflow around
 * them (docs/decisions/0015-remote-compaction.md). Temporal notices a dead compactor by its heartbeats and gives the task to another; what
 * comes of a task that the runner has given up is nobody's concern, for only the runner publishes.
 */
import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import { type CompactionResult, type CompactionTask, compactionQueue } from '@millrace/proto';
import { ActivityExecutionFailedError, type ActivityHandle, Client, Connection } from '@temporalio/client';
import { TimeoutFailure } from '@temporalio/common';
import type { Compactions } from '../compaction/compaction-messages.ts';

export interface TemporalCompactionsOptions {
  /** host:port of the Temporal frontend. */
  readonly address: string;
  readonly namespace: string;
  readonly clock: Clock;
  /** A task that nobody has taken by then is unanswered. Default 3 s. */
  readonly answerMs?: number;
  /** A compactor that was silent for so long is dead. Default 5 s. */
  readonly heartbeatTimeoutMs?: number;
}

/** Compactors that may have a go at one task. */
const attemptsMax = 3;

export class TemporalCompactions implements Compactions {
  readonly #options: TemporalCompactionsOptions;
  readonly #connection: Connection;
  readonly #client: Client;

  constructor(options: TemporalCompactionsOptions) {
    this.#options = options;
    this.#connection = Connection.lazy({ address: options.address });
    this.#client = new Client({ connection: this.#connection, namespace: options.namespace });
  }

  async compact(task: CompactionTask, timeoutMs: number, signal: AbortSignal): Promise<CompactionResult> {
    const { clock, answerMs = 3000 } = this.#options;
    let handle: ActivityHandle<CompactionResult> | undefined;
    const late = new AbortController();
    const starting = this.#start(task, timeoutMs, answerMs);
    try {
      handle = await within(starting, { clock, timeoutMs: answerMs, signal, late: late.signal });
      return await within(handle.result(), { clock, timeoutMs, signal, late: late.signal });
    } catch (error) {
      // Also when the start itself was too slow: then it is cancelled as soon as it is there.
      if (handle === undefined) void starting.then(giveUp, () => undefined);
      else giveUp(handle);
      throw signal.aborted ? MillraceError.from(signal.reason) : toError(error, handle !== undefined);
    } finally {
      late.abort();
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #start(task: CompactionTask, timeoutMs: number, answerMs: number): Promise<ActivityHandle<CompactionResult>> {
    return this.#client.activity.start<CompactionResult>('compact', {
      id: `${task.id}-compaction-${task.output.prefix}`,
      taskQueue: compactionQueue,
      args: [task],
      summary: `compaction of ${task.id}, attempt ${task.generation}`,
      scheduleToStartTimeout: answerMs,
      scheduleToCloseTimeout: timeoutMs,
      heartbeatTimeout: this.#options.heartbeatTimeoutMs ?? 5000,
      retry: { maximumAttempts: attemptsMax, initialInterval: 100, backoffCoefficient: 1 },
    });
  }
}

function giveUp(handle: ActivityHandle): void {
  handle.cancel('the owner of the table has given it up').catch(() => undefined); // over already, or it runs out
}

interface Bound {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Aborted when nobody waits any more. */
  readonly late: AbortSignal;
}

async function within<T>(work: Promise<T>, { clock, timeoutMs, signal, late }: Bound): Promise<T> {
  const either = AbortSignal.any([signal, late]);
  work.catch(() => undefined);
  const timeout = sleep(clock, timeoutMs, either).then(() => {
    throw new MillraceError('compaction-failed', `no answer within ${timeoutMs} ms`);
  });
  return await Promise.race([work, timeout]);
}

function toError(error: unknown, isStarted: boolean): MillraceError {
  const cause = error instanceof ActivityExecutionFailedError ? (error.cause ?? error) : error;
  const isUntaken = cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START';
  const message = cause instanceof Error ? cause.message : String(cause);
  if (isUntaken) return new MillraceError('compaction-unanswered', 'no compactor has taken it', { cause });
  if (isStarted) return new MillraceError('compaction-failed', message, { cause });
  return new MillraceError('compaction-unanswered', `Temporal has not taken it: ${message}`, { cause });
}
