import {
  type AttemptPlan,
  type JobDescription,
  type JobResult,
  type JobSettings,
  type JobState,
  type JobStatus,
  type Json,
  queries,
  signals,
} from '@millrace/proto/control';
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  patched,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { Claim, PreparedJob } from '../activities/contract.ts';
import { type AttemptResult, attempt } from './attempt.ts';
import { setAttributes } from './attributes.ts';
import { backoffMs } from './backoff.ts';
import { type ChangeHost, Changes } from './changes.ts';
import { type HeldSlot, keptSlots } from './claim-slots.ts';
import { type Cause, causeOf, endWith } from './failures.ts';
import { control, jobCode, operation } from './proxies.ts';
import { distinctRunners } from './runners.ts';
import { attemptsPerRun, claimsMax } from './timeouts.ts';

/** What one run of the workflow hands to the next. */
interface JobCarried {
  readonly settings: JobSettings;
  readonly description: JobDescription;
  readonly attempts: number;
  readonly failures: number;
  readonly newestCheckpoint: number;
  readonly lastFailure: string | null;
  readonly generation: number;
  readonly cancelRequested: boolean;
}

const cancelSignal = defineSignal(signals.cancel);
const attemptPlanned = defineSignal<[AttemptPlan]>(signals.attemptPlanned);
const jobStatus = defineQuery<JobStatus>(queries.status);

/** Failures that say nothing of the job: they do not use up its budget. */
const harmless = new Set(['lease-lapsed', 'runner-stopped']);

/**
 * A job from its start to its end: attempts, one after the other, each with a generation that fences the ones before.
 * `input` is what a person or a program typed: it is checked before anything else happens. A workflow whose id is not the
 * job's runs the job as a child with that id, so that Temporal itself allows each job to run once.
 */
export async function job(input: unknown, carried?: JobCarried): Promise<JobResult> {
  const run = new JobRun(carried);
  try {
    return await run.scope.run(() => run.toEnd(input));
  } catch (error) {
    await run.end();
    if (isCancellation(error) && run.cancelRequested) {
      run.enter('cancelled', 'Cancelled by signal.');
      return run.result('cancelled', null);
    }
    if (isCancellation(error)) {
      run.enter('cancelled', 'Cancelled.');
      throw error;
    }
    throw error;
  }
}

/** What became of an attempt; `replaced`: it was ended for another one to begin. */
type Outcome = { readonly result: AttemptResult } | { readonly cause: Cause } | { readonly replaced: true };

class JobRun implements ChangeHost {
  readonly scope = new CancellationScope();
  cancelRequested = false;
  ended = false;
  readonly #changes: Changes;
  #settings: JobSettings | undefined;
  #description: JobDescription | undefined;
  #state: JobState = 'starting';
  #details = 'Checking the input.';
  #plan: AttemptPlan | null = null;
  #generation = 0;
  /** The generation that the next claim takes over from; null: an older version prepared the job. */
  #newest: number | null = null;
  #attempts = 0;
  #failures = 0;
  #newestCheckpoint = 0;
  #lastFailure: string | null = null;
  /** Of the attempt that runs. */
  #attemptScope: CancellationScope | undefined;
  /** Slots of the attempt that has ended; its runners keep them for a moment. */
  #left: { readonly plan: AttemptPlan; readonly atMs: number; readonly cause?: Cause } | undefined;

  constructor(carried: JobCarried | undefined) {
    if (carried !== undefined) {
      this.#settings = carried.settings;
      this.#description = carried.description;
      this.#attempts = carried.attempts;
      this.#failures = carried.failures;
      this.#newestCheckpoint = carried.newestCheckpoint;
      this.#lastFailure = carried.lastFailure;
      this.#generation = carried.generation;
      this.#newest = carried.generation > 0 ? carried.generation : null;
      this.#state = 'restarting';
    }
    setHandler(cancelSignal, () => this.requestCancel());
    setHandler(attemptPlanned, (plan) => this.planned(plan));
    setHandler(jobStatus, () => this.status());
    this.#changes = new Changes(this);
    if (carried?.cancelRequested === true) this.requestCancel();
  }

  get id(): string {
    return this.#settings?.id ?? workflowInfo().workflowId;
  }

  get generation(): number {
    return this.#generation;
  }

  get plan(): AttemptPlan | null {
    return this.#plan;
  }

  get settings(): JobSettings | undefined {
    return this.#settings;
  }

  get loop(): string | undefined {
    return this.#plan?.checkpointLoopId;
  }

  replaceAttempt(): void {
    this.#attemptScope?.cancel();
  }

  /** Nothing is done to the job any more; resolves when whoever waited for that has been told. */
  async end(): Promise<void> {
    this.ended = true;
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  }

  requestCancel(): void {
    this.cancelRequested = true;
    this.scope.cancel();
  }

  planned(plan: AttemptPlan): void {
    if (plan.generation !== this.#generation) return;
    this.#plan = plan;
    // Whoever watches the attempt says when it runs.
    if (this.#changes.isWatching) return;
    this.enter(
      'running',
      `Attempt ${plan.generation} runs on ${new Set(plan.slots.map((s) => s.runnerId)).size} runner(s).`,
    );
  }

  enter(state: JobState, details: string): void {
    this.#details = details;
    setCurrentDetails(this.#lastFailure === null ? details : `${details}\n\nLast failure: ${this.#lastFailure}`);
    if (state === this.#state && this.#settings === undefined) return;
    this.#state = state;
    setAttributes({ state, ...(this.#generation > 0 ? { generation: this.#generation } : {}) });
  }

  status(): JobStatus {
    return {
      id: this.id,
      job: this.#settings?.job ?? '',
      state: this.#state,
      details: this.#details,
      generation: this.#generation,
      parallelism: this.#settings?.parallelism ?? 0,
      failures: this.#failures,
      lastFailure: this.#lastFailure,
      lastCheckpoint: null,
      plan: this.#plan,
      description: this.#description ?? null,
      operation: this.#changes.status,
    };
  }

  result(state: JobResult['state'], outcome: AttemptResult | null): JobResult {
    return {
      id: this.id,
      state,
      generation: this.#generation,
      checkpoints: outcome?.roundsDone ?? 0,
      lastCheckpoint: outcome?.last ?? null,
    };
  }

  async toEnd(input: unknown): Promise<JobResult> {
    let settings = this.#settings ?? (await this.#prepare(input));
    if (workflowInfo().workflowId !== settings.id) return await this.#asChild(settings, input);
    setAttributes({ job: settings.job, parallelism: settings.parallelism, state: this.#state });
    this.#scheduleCleanup(settings);
    this.#description ??= await this.#describe(settings);
    for (;;) {
      const isLong = this.#attempts >= attemptsPerRun || (this.#attempts > 0 && workflowInfo().continueAsNewSuggested);
      // What is being done to the job ends in the run in which it has begun.
      if (isLong && allHandlersFinished()) {
        return await continueAsNew<typeof job>(input, this.#carry(settings, this.#description));
      }
      const claim = await this.#claim(input, settings);
      settings = this.#changes.beforeAttempt(this.#settings ?? settings);
      this.#useSettings(settings);
      const outcome = await this.#attempt(settings, this.#description, claim);
      this.#leave(outcome);
      if ('cause' in outcome) this.#afterFailure(outcome.cause);
      if (!('result' in outcome)) continue;
      const { result } = outcome;
      if (result.stopped !== true) {
        await control.finishJob({ id: settings.id, generation: this.#generation });
        this.#changes.finished(result.last);
        await this.end();
        this.enter('finished', 'Every input has ended and every output is committed.');
        return this.result('finished', result);
      }
      if (!this.#changes.stopped(result.last)) continue;
      await this.end();
      this.enter('stopped', `Stopped with checkpoint ${result.last.checkpoint}; start it again to go on from there.`);
      return this.result('stopped', result);
    }
  }

  /** Beside the job's life: whether it succeeds is no matter to it. */
  #scheduleCleanup({ id, cleanupIntervalMs: everyMs }: JobSettings): void {
    if (this.#generation > 0 || everyMs === undefined || !patched('ttl-cleanup')) return;
    const scheduled = operation.scheduleCleanup.executeWithOptions({ summary: 'schedule the clean-up' }, [
      { id, everyMs },
    ]);
    scheduled.catch(() => undefined);
  }

  #useSettings(settings: JobSettings): void {
    const { parallelism } = settings;
    if (parallelism !== this.#settings?.parallelism) setAttributes({ parallelism });
    this.#settings = settings;
  }

  #leave(outcome: Outcome): void {
    const plan = this.#plan;
    this.#plan = null;
    this.#left =
      plan === null ? undefined : { plan, atMs: Date.now(), ...('cause' in outcome ? { cause: outcome.cause } : {}) };
  }

  /** Slots that runners keep for the next attempt. After a failure they are asked whether they still live. */
  async #held(parallelism: number): Promise<readonly HeldSlot[]> {
    const claimed = this.#changes.takeHeld();
    if (this.#left === undefined) return claimed;
    const { plan, atMs, cause } = this.#left;
    if (cause !== undefined && (cause.code === 'lease-lapsed' || cause.code === 'timeout')) return claimed;
    const lost = typeof cause?.details.runnerId === 'string' ? cause.details.runnerId : undefined;
    const kept = keptSlots(plan.slots, { atMs, count: parallelism - claimed.length, lost });
    if (cause === undefined || kept.length === 0) return [...kept, ...claimed];
    const runners = distinctRunners(kept.map(({ slot }) => slot));
    const live = new Set(await control.liveRunners.executeWithOptions({ summary: 'who is still there' }, [runners]));
    return [...kept.filter(({ slot }) => live.has(slot.runnerId)), ...claimed];
  }

  async #prepare(input: unknown): Promise<JobSettings> {
    let prepared: PreparedJob;
    try {
      prepared = await control.prepareJob.executeWithOptions({ summary: 'check the input' }, [
        input as Json | undefined,
      ]);
    } catch (error) {
      throw this.#giveUp(error);
    }
    const { generation, ...settings } = prepared;
    this.#newest = generation ?? null;
    this.#settings = settings;
    return settings;
  }

  async #describe(settings: JobSettings): Promise<JobDescription> {
    this.enter('starting', `Waiting for a task-runner that loads the code of job "${settings.job}".`);
    try {
      const input = { job: settings.job, options: settings.options };
      return await jobCode.describeJob.executeWithOptions({ summary: `load job ${settings.job}` }, [input]);
    } catch (error) {
      throw this.#giveUp(error);
    }
  }

  /** Fences every older attempt, then decides whether and when the next one begins. */
  async #claim(input: unknown, settings: JobSettings): Promise<Claim> {
    this.#attempts += 1;
    const claim = await this.#claimNewest(input, settings);
    this.#generation = claim.generation;
    this.#newest = claim.generation;
    // A checkpoint since the failure before: the job does make progress, so the budget starts anew.
    if (claim.newestCheckpoint > this.#newestCheckpoint) this.#failures = Math.min(this.#failures, 1);
    this.#newestCheckpoint = claim.newestCheckpoint;
    if (this.#failures > settings.failuresMax) {
      const words = `Gave up after ${this.#failures} failure(s) without a checkpoint between them. Last: ${this.#lastFailure}`;
      throw this.#giveUp(endWith({ code: 'job-failed', kind: 'input', message: words, details: {} }));
    }
    const waitMs = backoffMs(this.#failures);
    if (waitMs > 0) {
      this.enter('restarting', `Restarts in ${waitMs} ms from the last checkpoint.`);
      await sleep(waitMs, { summary: 'back-off' });
    }
    return claim;
  }

  /**
   * A claim is refused when the record has moved on since this run looked. Before its first claim, that was what an
   * earlier run had left under way, and this one looks again; later, only another run can have moved it, and that run
   * has taken over (or this one was reset, and the newer generations are its own).
   */
  async #claimNewest(input: unknown, first: JobSettings): Promise<Claim> {
    const { runId, firstExecutionRunId: run } = workflowInfo();
    let settings = first;
    for (let tries = 1; ; tries++) {
      try {
        return await control.claimGeneration.executeWithOptions({ summary: 'fence older attempts' }, [
          { settings, run, claim: `${runId}/${this.#attempts}`, previous: this.#newest },
        ]);
      } catch (error) {
        const { code, details } = causeOf(error);
        const mayLookAgain = this.#generation === 0 || details.run === run;
        if (code !== 'job-generation-fenced' || !mayLookAgain || tries >= claimsMax) throw this.#giveUp(error);
      }
      settings = await this.#prepare(input);
    }
  }

  async #attempt(settings: JobSettings, description: JobDescription, claim: Claim): Promise<Outcome> {
    const tellWhenRunning = this.#changes.isWatching;
    if (!tellWhenRunning)
      this.enter('waiting-for-slots', `Waiting for ${settings.parallelism} free slot(s) of task-runners.`);
    const held = await this.#held(settings.parallelism);
    const scope = new CancellationScope();
    this.#attemptScope = scope;
    try {
      const result = await scope.run(() =>
        executeChild(attempt, {
          workflowId: `${settings.id}-attempt-${claim.generation}`,
          args: [
            {
              settings,
              claim,
              codeHash: description.codeHash,
              ...(held.length === 0 ? {} : { held }),
              ...(tellWhenRunning ? { tellWhenRunning } : {}),
            },
          ],
          parentClosePolicy: ParentClosePolicy.TERMINATE,
          staticSummary: `attempt ${claim.generation} of ${settings.id}`,
          staticDetails: `Starts from ${claim.restoreFrom ?? 'empty state'}.`,
        }),
      );
      return { result };
    } catch (error) {
      if (!isCancellation(error)) return { cause: causeOf(error) };
      if (this.scope.consideredCancelled || !scope.consideredCancelled) throw error;
      return { replaced: true };
    } finally {
      this.#attemptScope = undefined;
    }
  }

  #afterFailure(cause: Cause): void {
    this.#lastFailure = `${cause.message} (${cause.code})`;
    if (this.#changes.failed(cause)) return;
    if (cause.kind === 'input' || cause.code === 'job-generation-fenced') throw this.#giveUp(endWith(cause));
    if (!harmless.has(cause.code)) this.#failures += 1;
    this.enter('restarting', 'Restarts from the last checkpoint.');
  }

  #giveUp(error: unknown): unknown {
    if (isCancellation(error)) return error;
    const cause = causeOf(error);
    this.#lastFailure = cause.message;
    this.enter('failed', cause.message);
    return endWith(cause);
  }

  async #asChild(settings: JobSettings, input: unknown): Promise<JobResult> {
    setAttributes({ job: settings.job });
    setCurrentDetails(`Runs as workflow ${settings.id}: the id of a job's workflow is the id of the job.`);
    try {
      return await executeChild(job, {
        workflowId: settings.id,
        args: [input],
        parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      });
    } catch (error) {
      throw this.#giveUp(error);
    }
  }

  #carry(settings: JobSettings, description: JobDescription): JobCarried {
    return {
      settings,
      description,
      attempts: 0,
      failures: this.#failures,
      newestCheckpoint: this.#newestCheckpoint,
      lastFailure: this.#lastFailure,
      generation: this.#generation,
      cancelRequested: this.cancelRequested,
    };
  }
}
