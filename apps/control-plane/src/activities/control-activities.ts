import type { CheckpointMode, Json } from '@millrace/proto/control';
import { claimed, finished, newestCheckpoint } from '../record/transitions.ts';
import type { RetentionQueue } from '../storage/retention-queue.ts';
import type { Sweeper } from '../storage/sweeper.ts';
import type { Claim, ClaimInput, ControlActivities, PreparedJob } from './contract.ts';
import { idOf, jobSettings, parseJobInput } from './job-input.ts';
import { awaitRunning, liveRunners } from './look.ts';
import { Round, type RoundDeps } from './round.ts';
import { asActivity, type ShellDeps } from './shell.ts';
import { watchRunners } from './watch.ts';

export interface ControlDeps extends RoundDeps, ShellDeps {
  /** Of jobs whose input names none. */
  readonly checkpointMode: CheckpointMode;
  readonly sweeper: Pick<Sweeper, 'request'>;
  readonly retention: Pick<RetentionQueue, 'request'>;
}

/** The control plane's activities, ready for a worker. Nothing is kept between calls but connections. */
export function controlActivities(deps: ControlDeps): ControlActivities {
  const round = new Round(deps);
  return {
    prepareJob: asActivity((input: Json | undefined) => prepareJob(input, deps), deps),
    claimGeneration: asActivity((input: ClaimInput) => claimGeneration(input, deps), deps),
    finishJob: asActivity(async (owner: { readonly id: string; readonly generation: number }) => {
      await deps.storage.updateRecord(owner, (record) => finished(record, owner));
      await deps.failPoint('finish.after-commit');
      deps.sweeper.request(owner.id);
    }, deps),
    watchRunners: asActivity((input, scope) => watchRunners(input, deps, scope), deps),
    awaitRunning: asActivity((input, scope) => awaitRunning(input, deps, scope), deps),
    endInputs: asActivity((attempt, scope) => round.endInputs(attempt, scope), deps),
    liveRunners: asActivity((runners, scope) => liveRunners(runners, deps, scope), deps),
    barrier: asActivity((step, scope) => round.barrier(step, scope), deps),
    drain: asActivity((step, scope) => round.drain(step, scope), deps),
    link: asActivity((input, scope) => round.link(input, scope), deps),
    register: asActivity(async (input, scope) => {
      await round.register(input, scope);
      deps.retention.request(input.step);
      deps.sweeper.request(input.step.id);
    }, deps),
    abortRound: asActivity((step, scope) => round.abort(step, scope), deps),
  };
}

async function prepareJob(input: Json | undefined, deps: ControlDeps): Promise<PreparedJob> {
  const parsed = parseJobInput(input);
  const record = await deps.storage.readRecord(idOf(parsed));
  return { ...jobSettings(parsed, record, deps.checkpointMode), generation: record?.generation ?? 0 };
}

async function claimGeneration(input: ClaimInput, deps: ControlDeps): Promise<Claim> {
  const { storage, failPoint, sweeper } = deps;
  const record = await storage.claimRecord(input.settings.id, input.claim, (current, generation) =>
    claimed(current, generation, input),
  );
  await failPoint('claim.after-commit');
  sweeper.request(input.settings.id);
  const newest = newestCheckpoint(record);
  return {
    generation: record.generation,
    ...(record.lineage === undefined ? {} : { lineage: record.lineage }),
    restoreFrom: newest?.path ?? null,
    nextCheckpoint: record.round + 1,
    newestCheckpoint: newest?.checkpoint ?? 0,
  };
}
