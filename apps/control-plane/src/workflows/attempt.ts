import {
  type AttemptPlan,
  type AttemptRunning,
  type JobSettings,
  operationSignals,
  type RoundResult,
  signals,
} from '@millrace/proto/control';
import {
  CancellationScope,
  getExternalWorkflowHandle,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import type { Claim, RunnerActivities, RunnerAddress } from '../activities/contract.ts';
import { setAttributes } from './attributes.ts';
import { checkpointLoop, type LoopResult } from './checkpoint-loop.ts';
import { claimSlots, type HeldSlot } from './claim-slots.ts';
import { causeOf, endWith } from './failures.ts';
import { longControl, runAttemptOptions } from './proxies.ts';
import { distinctRunners } from './runners.ts';
import { timeouts } from './timeouts.ts';

export interface AttemptInput {
  readonly settings: JobSettings;
  readonly claim: Claim;
  readonly codeHash: string;
  /** Slots that runners keep for this attempt. */
  readonly held?: readonly HeldSlot[];
  /** Tell the job when every slot is open. */
  readonly tellWhenRunning?: boolean;
}

export interface AttemptResult {
  readonly roundsDone: number;
  readonly last: RoundResult;
  /** It was stopped by an order of the job; else its inputs have ended. */
  readonly stopped?: boolean;
}

/**
 * One execution of the job on a set of slots, from claiming them to the end of the input. The first failure of any
 * part ends the whole; what other parts still do is cancelled without waiting and fenced by the next generation.
 */
export async function attempt(input: AttemptInput): Promise<AttemptResult> {
  const { settings, claim } = input;
  setAttributes({ job: settings.job, generation: claim.generation, parallelism: settings.parallelism });
  setCurrentDetails(`Waiting for ${settings.parallelism} free slot(s) of task-runners.`);
  const plan = await makePlan(input);
  const runners = distinctRunners(plan.slots);
  setCurrentDetails(
    `Runs on ${runners.map((r) => `${r.runnerId} (${r.address})`).join(', ')}; starts from ${plan.restoreFrom ?? 'empty state'}.`,
  );
  const { parent } = workflowInfo();
  if (parent !== undefined)
    await getExternalWorkflowHandle(parent.workflowId, parent.runId).signal(signals.attemptPlanned, plan);
  const whole = new CancellationScope();
  try {
    return await whole.run(() => runPlan(plan, runners, input));
  } catch (error) {
    if (isCancellation(error)) throw error;
    throw endWith(causeOf(error));
  } finally {
    whole.cancel();
  }
}

async function makePlan(input: AttemptInput): Promise<AttemptPlan> {
  const { settings, claim } = input;
  return {
    id: settings.id,
    job: settings.job,
    generation: claim.generation,
    ...(claim.lineage === undefined ? {} : { lineage: claim.lineage }),
    codeHash: input.codeHash,
    parallelism: settings.parallelism,
    maxParallelism: settings.maxParallelism,
    options: settings.options,
    slots: await claimSlots({
      id: settings.id,
      generation: claim.generation,
      parallelism: settings.parallelism,
      held: input.held ?? [],
    }),
    restoreFrom: claim.restoreFrom,
    ...(settings.allowDroppedState === true ? { allowDroppedState: true } : {}),
    ...(settings.overtakeAfterMs === undefined ? {} : { overtakeAfterMs: settings.overtakeAfterMs }),
    ...(settings.compaction === undefined ? {} : { compaction: settings.compaction }),
    checkpointLoopId: `${settings.id}-checkpoints-g${claim.generation}`,
  };
}

async function runPlan(plan: AttemptPlan, runners: readonly RunnerAddress[], input: AttemptInput): Promise<LoopResult> {
  const { settings, claim } = input;
  const loop = await startChild(checkpointLoop, {
    workflowId: plan.checkpointLoopId,
    args: [
      {
        plan,
        intervalMs: settings.checkpointIntervalMs,
        checkpointsRetained: settings.checkpointsRetained,
        roundTimeoutMs: settings.roundTimeoutMs,
        nextCheckpoint: claim.nextCheckpoint,
      },
    ],
    staticSummary: `checkpoints of ${plan.id}, attempt ${plan.generation}`,
  });
  const unfinished = new Map(runners.map((runner) => [runner.runnerId, runner]));
  const runs = runners.map(async ({ runnerId }) => {
    const activities = proxyActivities<RunnerActivities>(runAttemptOptions(runnerId));
    await activities.runAttempt.executeWithOptions({ summary: `slots of ${runnerId}` }, [{ plan, runnerId }]);
    unfinished.delete(runnerId);
  });
  const ends = Promise.all([loop.result(), ...runs]).then(([result]) => result);
  if (input.tellWhenRunning === true) void tellWhenRunning(plan, runners).catch(() => undefined);
  return await Promise.race([ends, watch(plan, unfinished)]);
}

/** What fails here fails the attempt by itself. */
async function tellWhenRunning(plan: AttemptPlan, runners: readonly RunnerAddress[]): Promise<void> {
  const { parent } = workflowInfo();
  if (parent === undefined) return;
  const { id, generation, parallelism } = plan;
  const { atMs } = await longControl.awaitRunning.executeWithOptions({ summary: 'wait until every slot is open' }, [
    { id, generation, parallelism, runners },
  ]);
  const running: AttemptRunning = { generation, atMs };
  await getExternalWorkflowHandle(parent.workflowId, parent.runId).signal(operationSignals.attemptRunning, running);
}

/** Fails when a runner that still has work is lost. A runner may go away once its part is done. */
async function watch(plan: AttemptPlan, unfinished: ReadonlyMap<string, RunnerAddress>): Promise<never> {
  for (;;) {
    try {
      await longControl.watchRunners.executeWithOptions({ summary: 'watch the runners' }, [
        {
          id: plan.id,
          generation: plan.generation,
          runners: [...unfinished.values()],
          silenceMaxMs: timeouts.runnerSilenceMaxMs,
        },
      ]);
    } catch (error) {
      const cause = causeOf(error);
      const lost =
        cause.code === 'runner-lost' && typeof cause.details.runnerId === 'string' ? cause.details.runnerId : undefined;
      if (lost === undefined || unfinished.has(lost)) throw error;
    }
  }
}
