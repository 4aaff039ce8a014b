import { type AttemptPlan, type LoopStatus, queries, type RoundResult, signals } from '@millrace/proto/control';
import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  executeChild,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { setAttributes } from './attributes.ts';
import { checkpointRound, roundStep } from './checkpoint-round.ts';
import { causeOf, endWith } from './failures.ts';
import { control } from './proxies.ts';
import { roundsPerRun } from './timeouts.ts';

export interface LoopInput {
  readonly plan: AttemptPlan;
  readonly intervalMs: number;
  readonly checkpointsRetained: number;
  readonly roundTimeoutMs: number;
  readonly nextCheckpoint: number;
}

/** What one run of the loop hands to the next. */
interface LoopState {
  readonly next: number;
  readonly requested: boolean;
  readonly lastStartMs: number;
  readonly done: number;
  readonly failed: number;
  readonly lastFailure: string | null;
  readonly recent: readonly RoundResult[];
}

export interface LoopResult {
  readonly roundsDone: number;
  readonly last: RoundResult;
}

const recentMax = 20;
const checkpointNow = defineSignal(signals.checkpointNow);
const status = defineQuery<LoopStatus>(queries.status);

/**
 * Starts rounds: one each interval, or at once when asked, never two at a time. A round that fails is closed for good
 * before the next begins. Ends with the checkpoint that ended the job; otherwise only by cancellation. Its own history
 * stays short by continuing as new, and its rounds appear in no other history.
 */
export async function checkpointLoop(input: LoopInput, carried?: LoopState): Promise<LoopResult> {
  const { plan } = input;
  const now = workflowInfo().startTime.getTime();
  let { next, requested, lastStartMs, done, failed, lastFailure, recent } = carried ?? {
    next: input.nextCheckpoint,
    requested: false,
    lastStartMs: now,
    done: 0,
    failed: 0,
    lastFailure: null as string | null,
    recent: [] as readonly RoundResult[],
  };
  let inFlight: number | null = null;
  setHandler(checkpointNow, () => {
    requested = true;
  });
  setHandler(status, () => ({
    id: plan.id,
    generation: plan.generation,
    inFlight,
    roundsDone: done,
    roundsFailed: failed,
    lastFailure,
    recent,
  }));
  if (carried === undefined) setAttributes({ job: plan.job, generation: plan.generation });

  for (let rounds = 0; ; rounds++) {
    if (rounds >= roundsPerRun || (rounds > 0 && workflowInfo().continueAsNewSuggested)) {
      await condition(allHandlersFinished);
      return continueAsNew<typeof checkpointLoop>(input, {
        next,
        requested,
        lastStartMs,
        done,
        failed,
        lastFailure,
        recent,
      });
    }
    const waitMs = lastStartMs + input.intervalMs - Date.now();
    if (waitMs > 0) await condition(() => requested, waitMs);
    requested = false;
    lastStartMs = Date.now();
    inFlight = next;
    const outcome = await runRound(input, next);
    inFlight = null;
    next += 1;
    if ('failure' in outcome) {
      failed += 1;
      lastFailure = outcome.failure;
    } else {
      done += 1;
      recent = [...recent, outcome.result].slice(-recentMax);
      setAttributes({ checkpoint: outcome.result.checkpoint });
    }
    setCurrentDetails(details(done, failed, lastFailure, recent.at(-1)));
    if ('result' in outcome && outcome.result.last) return { roundsDone: done, last: outcome.result };
  }
}

/** Runs one round; a failed one is closed, so that it can never register later. */
async function runRound(
  input: LoopInput,
  checkpoint: number,
): Promise<{ readonly result: RoundResult } | { readonly failure: string }> {
  const { plan, checkpointsRetained, roundTimeoutMs } = input;
  try {
    const result = await executeChild(checkpointRound, {
      workflowId: `${plan.id}-checkpoint-${checkpoint}`,
      args: [{ plan, checkpointsRetained, timeoutMs: roundTimeoutMs, checkpoint }],
      staticSummary: `checkpoint ${checkpoint} of ${plan.id}, attempt ${plan.generation}`,
    });
    return { result };
  } catch (error) {
    if (isCancellation(error)) throw error;
    const cause = causeOf(error);
    if (cause.kind === 'fenced') throw endWith(cause);
    const registered = await control.abortRound.executeWithOptions(
      { summary: `checkpoint ${checkpoint}: abort (${cause.code})` },
      [roundStep({ plan, checkpoint })],
    );
    return registered === null ? { failure: `checkpoint ${checkpoint}: ${cause.message}` } : { result: registered };
  }
}

function details(done: number, failed: number, lastFailure: string | null, newest: RoundResult | undefined): string {
  const lines = [`Rounds done: ${done}, failed: ${failed}.`];
  if (newest !== undefined) {
    lines.push(
      `Newest: checkpoint ${newest.checkpoint}, ${newest.durationMs} ms, ${newest.bytesPut} bytes put, ${newest.bytesLinked} linked.`,
    );
  }
  if (lastFailure !== null) lines.push(`Last failure: ${lastFailure}`);
  return lines.join('\n\n');
}
