import {
  type AttemptPlan,
  type LoopStatus,
  operationSignals,
  queries,
  type RoundOrder,
  type RoundReply,
  type RoundResult,
  signals,
} from '@millrace/proto/control';
import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  executeChild,
  getExternalWorkflowHandle,
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
  /** Absent in states of older versions. */
  readonly orders?: readonly RoundOrder[];
}

export interface LoopResult {
  readonly roundsDone: number;
  readonly last: RoundResult;
  /** The attempt was stopped by this checkpoint; else the job has come to its end. */
  readonly stopped?: boolean;
}

const recentMax = 20;
const checkpointNow = defineSignal(signals.checkpointNow);
const orderRound = defineSignal<[RoundOrder]>(operationSignals.orderRound);
const status = defineQuery<LoopStatus>(queries.status);

/**
 * Starts rounds: one each interval, or at once when asked, never two at a time. A round that fails is closed for good
 * before the next begins. Ends with the checkpoint that ended the job, or that was ordered to end the attempt; otherwise
 * only by cancellation. Orders of the job (stop, savepoint) are served by the next round, and answered. Its own history
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
  let orders: readonly RoundOrder[] = carried?.orders ?? [];
  setHandler(checkpointNow, () => {
    requested = true;
  });
  setHandler(orderRound, (order) => {
    if (!orders.some((known) => known.operation === order.operation)) orders = [...orders, order];
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
        orders,
      });
    }
    const waitMs = lastStartMs + input.intervalMs - Date.now();
    if (waitMs > 0) await condition(() => requested || orders.length > 0, waitMs);
    requested = false;
    lastStartMs = Date.now();
    inFlight = next;
    const served = orders;
    orders = [];
    const outcome = await runRound(input, next, served);
    inFlight = null;
    const checkpoint = next;
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
    await answer(plan, served, { ...outcome, checkpoint, startedMs: lastStartMs });
    if ('result' in outcome && outcome.result.last) return { roundsDone: done, last: outcome.result };
    if ('result' in outcome && served.some((order) => order.stop)) {
      return { roundsDone: done, last: outcome.result, stopped: true };
    }
  }
}

/** Runs one round; a failed one is closed, so that it can never register later. */
async function runRound(
  input: LoopInput,
  checkpoint: number,
  orders: readonly RoundOrder[],
): Promise<{ readonly result: RoundResult } | { readonly failure: string }> {
  const { plan, checkpointsRetained, roundTimeoutMs } = input;
  const savepoints = orders.flatMap(({ savepoint }) => savepoint ?? []);
  const stop = orders.some((order) => order.stop) ? { stop: true } : {};
  try {
    const result = await executeChild(checkpointRound, {
      workflowId: `${plan.id}-checkpoint-${checkpoint}`,
      args: [
        {
          plan,
          checkpointsRetained,
          timeoutMs: roundTimeoutMs,
          checkpoint,
          ...stop,
          ...(savepoints.length === 0 ? {} : { savepoints }),
        },
      ],
      staticSummary: `checkpoint ${checkpoint} of ${plan.id}, attempt ${plan.generation}${stop.stop === true ? ', its last' : ''}`,
    });
    return { result };
  } catch (error) {
    if (isCancellation(error)) throw error;
    const cause = causeOf(error);
    if (cause.kind === 'fenced') throw endWith(cause);
    const registered = await control.abortRound.executeWithOptions(
      { summary: `checkpoint ${checkpoint}: abort (${cause.code})` },
      [roundStep({ plan, checkpoint, ...stop })],
    );
    return registered === null ? { failure: `checkpoint ${checkpoint}: ${cause.message}` } : { result: registered };
  }
}

/** Tells the job what became of its orders. A job that is over needs no answer. */
async function answer(
  plan: AttemptPlan,
  orders: readonly RoundOrder[],
  outcome: ({ readonly result: RoundResult } | { readonly failure: string }) & {
    readonly checkpoint: number;
    readonly startedMs: number;
  },
): Promise<void> {
  const { checkpoint, startedMs } = outcome;
  for (const { operation } of orders) {
    const reply: RoundReply = {
      operation,
      generation: plan.generation,
      checkpoint,
      path: 'result' in outcome ? outcome.result.path : null,
      startedMs,
      failure: 'failure' in outcome ? outcome.failure : null,
    };
    await getExternalWorkflowHandle(plan.id)
      .signal(operationSignals.roundDone, reply)
      .catch((error: unknown) => {
        if (isCancellation(error)) throw error;
      });
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
