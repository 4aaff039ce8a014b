import { controlQueue, jobCodeQueue, runnerQueue, slotQueue } from '@millrace/proto/control';
import { ActivityCancellationType, type ActivityOptions, proxyActivities } from '@temporalio/workflow';
import type { ControlActivities, RunnerActivities } from '../activities/contract.ts';
import type { OperationActivities } from '../activities/operation-contract.ts';
import { operationTriesMax, timeouts } from './timeouts.ts';

const retry = { initialInterval: 200, backoffCoefficient: 2, maximumInterval: 5_000 } as const;

/** Repeated until it succeeds, its failure says not to, or the caller's scope ends. */
export const control = proxyActivities<ControlActivities>({
  taskQueue: controlQueue,
  startToCloseTimeout: timeouts.controlStepMs,
  heartbeatTimeout: timeouts.controlHeartbeatMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry,
});

/** Control-plane activities that last as long as an attempt or a round. */
export const longControl = proxyActivities<ControlActivities>({
  taskQueue: controlQueue,
  startToCloseTimeout: '3650 days',
  heartbeatTimeout: timeouts.controlHeartbeatMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry,
});

/** Steps of operations. What repeating cannot help fails at once; what it may is given up after some tries. */
export const operation = proxyActivities<OperationActivities>({
  taskQueue: controlQueue,
  startToCloseTimeout: timeouts.controlStepMs,
  heartbeatTimeout: timeouts.controlHeartbeatMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry: { ...retry, maximumAttempts: operationTriesMax },
});

/** Steps of operations that last as long as the job takes. */
export const longOperation = proxyActivities<OperationActivities>({
  taskQueue: controlQueue,
  startToCloseTimeout: '3650 days',
  heartbeatTimeout: timeouts.controlHeartbeatMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry: { ...retry, maximumAttempts: operationTriesMax },
});

/** Waits, however long, for a runner with a free slot. */
export const slots = proxyActivities<RunnerActivities>({
  taskQueue: slotQueue,
  startToCloseTimeout: timeouts.claimMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry: { ...retry, maximumInterval: 1_000 },
});

/** Waits, however long, for a runner that can load job code. */
export const jobCode = proxyActivities<RunnerActivities>({
  taskQueue: jobCodeQueue,
  startToCloseTimeout: timeouts.describeMs,
  cancellationType: ActivityCancellationType.TRY_CANCEL,
  retry,
});

/**
 * Options of `runAttempt`. One try: a failure is the attempt's. Cancelling does not wait, so that a lost runner cannot
 * hold the job up; a runner that still lives learns of it by its next heartbeat, and what it writes is fenced.
 */
export function runAttemptOptions(runnerId: string): ActivityOptions {
  return {
    taskQueue: runnerQueue(runnerId),
    scheduleToStartTimeout: timeouts.attemptStartMs,
    startToCloseTimeout: '3650 days',
    heartbeatTimeout: timeouts.attemptHeartbeatMs,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: { maximumAttempts: 1 },
  };
}
