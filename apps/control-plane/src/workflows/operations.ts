import {
  type CheckpointList,
  type CleanupResult,
  type Json,
  type OperationStatus,
  operationSignals,
  queries,
  type RescaleResult,
  type RestoreResult,
  type SavepointResult,
  type StopResult,
  updates,
} from '@millrace/proto/control';
import { defineQuery, defineSignal, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow';
import type { CheckName, CleanupPart, StartPlan } from '../activities/operation-contract.ts';
import { setAttributes } from './attributes.ts';
import { causeOf, endWith } from './failures.ts';
import { longOperation, operation } from './proxies.ts';

/**
 * The operations on a job. Each checks its input first and ends in words that name the field when it cannot be used.
 * What concerns the running attempt is an update of the job's workflow, sent by an activity that is repeated until it has
 * the answer: the job carries the operation out, whatever becomes of this workflow.
 */

const progress = defineSignal<[OperationStatus]>(operationSignals.operationProgress);
const status = defineQuery<readonly OperationStatus[]>(queries.status);

/** Shows what the operation is at, and ends it with the code and the words of whatever failed. */
async function shown<T>(work: () => Promise<T>, done: (result: T) => string): Promise<T> {
  const steps: OperationStatus[] = [];
  setHandler(status, () => steps);
  setHandler(progress, (step) => {
    steps.push(step);
    setCurrentDetails(steps.map((one) => `${one.phase}: ${one.details}`).join('\n\n'));
  });
  try {
    const result = await work();
    setCurrentDetails(done(result));
    return result;
  } catch (error) {
    const cause = causeOf(error);
    setCurrentDetails(cause.message);
    throw endWith(cause);
  }
}

async function check(
  name: CheckName,
  input: unknown,
): Promise<{ readonly id: string; readonly order: Readonly<Record<string, Json>> }> {
  const checked = await operation.checkOperation.executeWithOptions({ summary: 'check the input' }, [
    { name, input: input as Json | undefined },
  ]);
  setAttributes({ job: checked.id });
  return checked;
}

/** An operation that the job's workflow carries out. */
async function steered<T>(name: 'rescale' | 'savepoint' | 'stop', input: unknown): Promise<T> {
  const { id, order } = await check(name, input);
  const { workflowId, runId } = workflowInfo();
  const update = { ...order, operation: `${workflowId}/${runId}`, reply: workflowId };
  const sent = { id, name: updates[name], order: update, updateId: runId };
  return (await longOperation.steerJob.executeWithOptions({ summary: `${name} job ${id}` }, [sent])) as T;
}

export async function rescale(input: unknown): Promise<RescaleResult> {
  return await shown(
    () => steered<RescaleResult>('rescale', input),
    ({ id, from, to, downtimeMs }) =>
      `Job ${id} runs at parallelism ${to} instead of ${from}${downtimeMs === null ? '' : `, after ${downtimeMs} ms without records`}.`,
  );
}

export async function savepoint(input: unknown): Promise<SavepointResult> {
  return await shown(
    () => steered<SavepointResult>('savepoint', input),
    ({ id, name, checkpoint }) =>
      `Savepoint ${name} of job ${id} is checkpoint ${checkpoint}; it is kept until released.`,
  );
}

export async function stop(input: unknown): Promise<StopResult> {
  return await shown(
    () => steered<StopResult>('stop', input),
    ({ id, mode, checkpoint }) =>
      `Job ${id} was ${mode === 'drain' ? 'drained' : 'stopped'} with checkpoint ${checkpoint}.`,
  );
}

export async function restore(input: unknown): Promise<RestoreResult> {
  return await shown(async () => {
    const plan = await operation.planRestore.executeWithOptions({ summary: 'find the checkpoint' }, [input as Json]);
    const id = plan.input.id ?? plan.input.job;
    setAttributes({ job: id });
    if (plan.isRunning) await longOperation.endJob.executeWithOptions({ summary: `end job ${id}` }, [{ id }]);
    return await begin(plan);
  }, startedFrom);
}

export async function fork(input: unknown): Promise<RestoreResult> {
  return await shown(async () => {
    const { workflowId, runId } = workflowInfo();
    const claim = `${workflowId}/${runId}`;
    const plan = await operation.forkJob.executeWithOptions({ summary: 'link the checkpoint' }, [
      { input: input as Json, claim },
    ]);
    setAttributes({ job: plan.input.id ?? plan.input.job });
    return { ...(await begin(plan)), bytesLinked: plan.bytesLinked };
  }, startedFrom);
}

async function begin({ input, path, checkpoint }: StartPlan): Promise<RestoreResult> {
  const id = input.id ?? input.job;
  const claim = workflowInfo().runId;
  await operation.startJob.executeWithOptions({ summary: `start job ${id}` }, [{ input, claim }]);
  await longOperation.awaitJob.executeWithOptions({ summary: 'wait until it runs' }, [{ id }]);
  return { id, from: path, checkpoint, parallelism: input.parallelism ?? 1 };
}

function startedFrom({ id, from, parallelism }: RestoreResult): string {
  return `Job ${id} runs at parallelism ${parallelism}; it started from ${from}.`;
}

export async function checkpoints(input: unknown): Promise<CheckpointList> {
  return await shown(
    async () => {
      const { id } = await check('checkpoints', input);
      return await operation.listCheckpoints.executeWithOptions({ summary: 'read the record' }, [{ id }]);
    },
    ({ id, checkpoints: all }) => `Job ${id} has ${all.length} checkpoint(s) and savepoint(s).`,
  );
}

export async function release(input: unknown): Promise<CleanupResult> {
  return await shown(async () => {
    const { id, order } = await check('release', input);
    const name = order.savepoint as string;
    await operation.releaseSavepoint.executeWithOptions({ summary: `release ${name}` }, [{ id, savepoint: name }]);
    return { id, ...(await expire(id)) };
  }, freed);
}

export async function deleteJob(input: unknown): Promise<CleanupResult> {
  return await shown(async () => {
    const { id, order } = await check('deleteJob', input);
    const { workflowId, runId } = workflowInfo();
    const marked = { id, claim: `${workflowId}/${runId}`, savepoints: order.savepoints === true };
    await operation.markDeleted.executeWithOptions({ summary: `job ${id} is no more` }, [marked]);
    return { id, ...(await longOperation.eraseJob.executeWithOptions({ summary: 'delete what it held' }, [{ id }])) };
  }, freed);
}

const graceMsDefault = 3_600_000;

export async function ttlCleanup(input: unknown): Promise<CleanupResult> {
  return await shown(async () => {
    const { id, order } = await check('ttlCleanup', input);
    const expired = await expire(id);
    const graceMs = typeof order.graceMs === 'number' ? order.graceMs : graceMsDefault;
    const swept = await longOperation.sweepJob.executeWithOptions({ summary: 'sweep what nothing needs' }, [
      { id, graceMs },
    ]);
    return { id, ...sum(expired, swept) };
  }, freed);
}

function expire(id: string): Promise<CleanupPart> {
  return longOperation.expireCheckpoints.executeWithOptions({ summary: 'delete what retention gave up' }, [{ id }]);
}

function sum(a: CleanupPart, b: CleanupPart): CleanupPart {
  return {
    checkpointsDropped: a.checkpointsDropped + b.checkpointsDropped,
    filesRemoved: a.filesRemoved + b.filesRemoved,
    objectsRemoved: a.objectsRemoved + b.objectsRemoved,
    bytesFreed: a.bytesFreed + b.bytesFreed,
    filesPinned: a.filesPinned + b.filesPinned,
    failed: a.failed + b.failed,
  };
}

function freed({ id, filesRemoved, objectsRemoved, bytesFreed, filesPinned, failed }: CleanupResult): string {
  const pinned = filesPinned === 0 ? '' : ` ${filesPinned} file(s) stay for forks.`;
  const left = failed === 0 ? '' : ` ${failed} removal(s) failed and are left to the next clean-up.`;
  return `Job ${id}: ${filesRemoved} file(s) and ${objectsRemoved} object(s) removed, ${bytesFreed} bytes freed.${pinned}${left}`;
}
