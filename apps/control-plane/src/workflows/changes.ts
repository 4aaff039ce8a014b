import {
  type AttemptPlan,
  type AttemptRunning,
  type JobSettings,
  type JobState,
  type OperationStatus,
  operationSignals,
  type RescaleResult,
  type RoundReply,
  type RoundResult,
  type SavepointResult,
  type StopResult,
  updates,
} from '@millrace/proto/control';
import {
  CancellationScope,
  condition,
  defineSignal,
  defineUpdate,
  getExternalWorkflowHandle,
  isCancellation,
  setHandler,
  uuid4,
} from '@temporalio/workflow';
import {
  type Change,
  changeStatus,
  isWorthAnother,
  type RescaleChange,
  rolledBack,
  type StopChange,
} from './change.ts';
import { claimHeld, type HeldSlot } from './claim-slots.ts';
import { type Cause, endWith } from './failures.ts';
import { checkpointOrder, type Origin, rescaleOrder, savepointOrder, stopOrder } from './orders.ts';
import { control } from './proxies.ts';
import { type OrderHost, RoundOrders } from './round-orders.ts';
import { distinctRunners } from './runners.ts';

/** The job as its changes see it. */
export interface ChangeHost extends OrderHost {
  readonly id: string;
  readonly generation: number;
  readonly plan: AttemptPlan | null;
  readonly settings: JobSettings | undefined;
  enter(state: JobState, details: string): void;
  /** Ends the attempt, if any, without a checkpoint; another one follows. */
  replaceAttempt(): void;
}

const rescaleUpdate = defineUpdate<RescaleResult, [unknown]>(updates.rescale);
const stopUpdate = defineUpdate<StopResult, [unknown]>(updates.stop);
const savepointUpdate = defineUpdate<SavepointResult, [unknown]>(updates.savepoint);
const checkpointUpdate = defineUpdate<RoundReply, [unknown]>(updates.checkpoint);
const roundDone = defineSignal<[RoundReply]>(operationSignals.roundDone);
const attemptRunning = defineSignal<[AttemptRunning]>(operationSignals.attemptRunning);
const progress = defineSignal<[OperationStatus]>(operationSignals.operationProgress);

/**
 * What people do to a running job: rescale, stop, savepoint, checkpoint. An update is refused by its validator, in
 * words and with nothing in the history, or it ends with what became of it. One change of the attempt at a time;
 * savepoints and checkpoints may be asked for at any time. All of this is workflow state: it outlives every process.
 */
export class Changes {
  readonly #host: ChangeHost;
  readonly #orders: RoundOrders;
  #current: Change | undefined;

  constructor(host: ChangeHost) {
    this.#host = host;
    this.#orders = new RoundOrders(host);
    setHandler(rescaleUpdate, (input) => this.#rescale(input), { validator: (input) => this.#mayRescale(input) });
    setHandler(stopUpdate, (input) => this.#stop(input), { validator: (input) => this.#mayStop(input) });
    setHandler(savepointUpdate, (input) => this.#savepoint(input), {
      validator: (input) => {
        savepointOrder(input);
        this.#mustLive();
      },
    });
    setHandler(checkpointUpdate, (input) => this.#checkpoint(input), {
      validator: (input) => {
        checkpointOrder(input);
        this.#mustLive();
      },
    });
    setHandler(roundDone, (reply) => this.#orders.done(reply));
    setHandler(attemptRunning, (running) => this.#running(running));
  }

  get status(): OperationStatus | null {
    return this.#current === undefined ? null : changeStatus(this.#current);
  }

  /** The attempt that begins now is to say when it runs. */
  get isWatching(): boolean {
    const change = this.#current;
    return change?.kind === 'rescale' && (change.phase === 'deploying' || change.phase === 'rolling-back');
  }

  /** Slots that were claimed beforehand for the attempt that begins now; each is given once. */
  takeHeld(): readonly HeldSlot[] {
    const change = this.#current;
    if (change?.kind !== 'rescale' || change.phase !== 'deploying') return [];
    const { held } = change;
    change.held = [];
    return held;
  }

  /** Settings of the attempt that begins now. */
  beforeAttempt(settings: JobSettings): JobSettings {
    const change = this.#current;
    if (change?.kind !== 'rescale') return settings;
    if (change.phase === 'stopping') {
      this.#to(change, 'deploying', `The new attempt with parallelism ${change.to} comes up.`);
      this.#watchDeadline(change).catch(ignoreCancellation);
    }
    if (change.phase === 'deploying') return { ...settings, parallelism: change.to };
    return change.phase === 'rolling-back' ? { ...settings, parallelism: change.from } : settings;
  }

  /** An order has ended the attempt with a checkpoint. True: the job is to end with it. */
  stopped(last: RoundResult): boolean {
    const change = this.#current;
    if (change?.kind !== 'stop') return false;
    const { mode } = change;
    change.outcome = { result: { id: this.#host.id, mode, checkpoint: last.checkpoint, path: last.path } };
    return true;
  }

  /** The inputs of the job have ended. */
  finished(last: RoundResult): void {
    const change = this.#current;
    if (change?.kind !== 'stop') return;
    const { mode } = change;
    change.outcome = { result: { id: this.#host.id, mode, checkpoint: last.checkpoint, path: last.path } };
  }

  /** An attempt has failed. True: that was the change's doing, and counts for nothing. */
  failed(cause: Cause): boolean {
    const change = this.#current;
    if (change?.kind !== 'rescale') return false;
    if (change.phase === 'rolling-back') {
      change.outcome = { cause: rolledBack(change, change.reason ?? cause) };
      return false;
    }
    if (change.phase !== 'deploying') return false;
    if (isWorthAnother(change, cause)) {
      change.losses += 1;
      this.#to(change, 'deploying', `The new attempt was lost and comes up again: ${cause.message}`);
    } else {
      this.#rollBack(change, cause);
    }
    return true;
  }

  #mustLive(): JobSettings {
    const { ended, settings, id } = this.#host;
    if (ended) throw refusal('job-ended', `Job "${id}" is ending.`);
    if (settings === undefined) throw refusal('operation-refused', `Job "${id}" has not begun yet.`);
    return settings;
  }

  #mustBeFree(): void {
    if (this.#current === undefined) return;
    const { kind, operation } = this.#current;
    const words = `Job "${this.#host.id}" is being changed already: ${kind} (${operation}). Wait until that is done.`;
    throw refusal('operation-refused', words);
  }

  #mayRescale(input: unknown): void {
    const settings = this.#mustLive();
    const { parallelism } = rescaleOrder(input, settings.maxParallelism);
    this.#mustBeFree();
    if (parallelism !== settings.parallelism) return;
    const words = `Field "parallelism": job "${this.#host.id}" runs at parallelism ${parallelism} already.`;
    throw refusal('operation-refused', words, 'parallelism');
  }

  #mayStop(input: unknown): void {
    this.#mustLive();
    stopOrder(input);
    this.#mustBeFree();
  }

  async #rescale(input: unknown): Promise<RescaleResult> {
    const settings = this.#mustLive();
    const { parallelism: to, timeoutMs, origin } = rescaleOrder(input, settings.maxParallelism);
    const change: RescaleChange = {
      ...started(origin),
      kind: 'rescale',
      from: settings.parallelism,
      to,
      timeoutMs,
      phase: 'claiming',
      held: [],
      checkpoint: null,
      stoppedAtMs: null,
      losses: 0,
      reason: undefined,
      outcome: undefined,
    };
    this.#current = change;
    try {
      await this.#claimMore(change);
      await this.#stopForRescale(change);
      await condition(() => change.outcome !== undefined || this.#host.ended);
      return resultOf(change, this.#host.id);
    } finally {
      this.#current = undefined;
    }
  }

  /** Slots that the job has not yet are claimed while it runs: without them it is not stopped at all. */
  async #claimMore(change: RescaleChange): Promise<void> {
    const more = change.to - change.from;
    const { id, generation, loop } = this.#host;
    if (more <= 0 || loop === undefined) return;
    this.#to(change, 'claiming', `Claims ${more} more slot(s) of task-runners; the job runs on meanwhile.`);
    try {
      change.held = await CancellationScope.withTimeout(change.timeoutMs, () =>
        claimHeld({ id, generation, parallelism: more }),
      );
    } catch (error) {
      if (!isCancellation(error) || CancellationScope.current().consideredCancelled) throw error;
      const words = `No ${more} free slot(s) within ${change.timeoutMs} ms; the job runs on at parallelism ${change.from}. Add task-runners or slots.`;
      this.#host.enter('running', words);
      throw endWith({ code: 'no-free-slots', kind: 'setup', message: words, details: { more } });
    }
  }

  async #stopForRescale(change: RescaleChange): Promise<void> {
    const host = this.#host;
    if (host.loop === undefined) {
      this.#to(change, 'stopping', `Replaces the attempt, which has not begun, by one with parallelism ${change.to}.`);
      host.replaceAttempt();
      return;
    }
    this.#to(change, 'stopping', `Stops the attempt with a checkpoint, then starts ${change.to} subtask(s).`);
    const order = { operation: change.operation, stop: true, savepoint: null };
    const reply = await this.#orders.serve(order, () => change.phase !== 'stopping' || change.outcome !== undefined);
    if (reply === undefined) return;
    if (reply.failure === null) {
      change.checkpoint = reply.checkpoint;
      change.stoppedAtMs = reply.startedMs;
    } else {
      change.outcome = { cause: stopFailed(reply) };
      host.enter('running', `The last checkpoint failed, the job runs on: ${reply.failure}`);
    }
  }

  async #watchDeadline(change: RescaleChange): Promise<void> {
    const isOver = (): boolean => change.phase !== 'deploying' || change.outcome !== undefined || this.#host.ended;
    if (await condition(isOver, change.timeoutMs)) return;
    const message = `It was not running after ${change.timeoutMs} ms. Are there enough free slots?`;
    this.#rollBack(change, { code: 'timeout', kind: 'retry', message, details: {} });
    this.#host.replaceAttempt();
  }

  #rollBack(change: RescaleChange, cause: Cause): void {
    change.reason = cause;
    this.#to(change, 'rolling-back', `Back to parallelism ${change.from}: ${cause.message}`);
  }

  #running({ generation, atMs }: AttemptRunning): void {
    const change = this.#current;
    if (change?.kind !== 'rescale' || !this.isWatching || generation !== this.#host.generation) return;
    const { from, to, checkpoint, stoppedAtMs, reason } = change;
    if (change.phase === 'rolling-back' && reason !== undefined) {
      change.outcome = { cause: rolledBack(change, reason) };
      this.#host.enter('running', `Runs at parallelism ${from} as before: rescaling to ${to} was rolled back.`);
      return;
    }
    const downtimeMs = stoppedAtMs === null ? null : Math.max(0, atMs - stoppedAtMs);
    change.outcome = { result: { id: this.#host.id, from, to, generation, checkpoint, downtimeMs } };
    this.#host.enter('running', `Runs at parallelism ${to} instead of ${from}.`);
  }

  async #stop(input: unknown): Promise<StopResult> {
    this.#mustLive();
    const { mode, savepoint, origin } = stopOrder(input);
    const change: StopChange = {
      ...started(origin),
      kind: 'stop',
      mode,
      savepoint,
      phase: mode === 'drain' ? 'draining' : 'stopping',
      outcome: undefined,
    };
    this.#current = change;
    const isOver = (): boolean => change.outcome !== undefined || this.#host.ended;
    try {
      if (mode === 'drain') await this.#drain(change, isOver);
      else await this.#suspend(change, isOver);
      return resultOf(change, this.#host.id);
    } finally {
      this.#current = undefined;
    }
  }

  /** When the attempt fails after the checkpoint and before every sink has committed, the next one is stopped. */
  async #suspend(change: StopChange, isOver: () => boolean): Promise<void> {
    const host = this.#host;
    const order = { operation: change.operation, stop: true, savepoint: change.savepoint ?? null };
    while (!isOver()) {
      this.#to(change, 'stopping', 'Stops the job with a last checkpoint.');
      const reply = await this.#orders.serve(order, isOver);
      const { loop } = host;
      if (reply !== undefined && reply.failure !== null) {
        change.outcome = { cause: stopFailed(reply) };
        host.enter('running', `The last checkpoint failed, the job runs on: ${reply.failure}`);
        return;
      }
      await condition(() => isOver() || host.loop !== loop);
    }
  }

  /** Every attempt that begins is told to end its inputs, until the job has come to its end. */
  async #drain(change: StopChange, isOver: () => boolean): Promise<void> {
    const host = this.#host;
    while (!isOver()) {
      this.#to(change, 'draining', 'Sources end; what they have read is brought to its end.');
      await condition(() => host.loop !== undefined || isOver());
      const { loop, plan } = host;
      if (plan === null || isOver()) return;
      const scope = new CancellationScope();
      const { id, generation } = plan;
      const told = scope.run(() =>
        control.endInputs.executeWithOptions({ summary: 'end the inputs' }, [
          { id, generation, runners: distinctRunners(plan.slots) },
        ]),
      );
      told.catch(() => undefined);
      await condition(() => host.loop !== loop || isOver());
      scope.cancel();
    }
  }

  async #savepoint(input: unknown): Promise<SavepointResult> {
    const { name, origin } = savepointOrder(input);
    const order = { operation: started(origin).operation, stop: false, savepoint: name ?? '' };
    const { checkpoint, generation, path } = await this.#registered(order);
    return { id: this.#host.id, name: name ?? `savepoint-${checkpoint}`, checkpoint, generation, path };
  }

  async #checkpoint(input: unknown): Promise<RoundReply> {
    const { origin } = checkpointOrder(input);
    return await this.#registered({ operation: started(origin).operation, stop: false, savepoint: null });
  }

  async #registered(order: Parameters<RoundOrders['serve']>[0]): Promise<RoundReply & { readonly path: string }> {
    const reply = await this.#orders.serve(order);
    if (reply === undefined) throw jobEnded(this.#host.id);
    const { path, failure } = reply;
    if (path !== null && failure === null) return { ...reply, path };
    const message = `The checkpoint failed, and the job goes on: ${failure}`;
    throw endWith({ code: 'checkpoint-aborted', kind: 'retry', message, details: { checkpoint: reply.checkpoint } });
  }

  #to<C extends Change>(change: C, phase: C['phase'], details: string): void {
    change.phase = phase;
    change.details = details;
    this.#host.enter(change.kind === 'rescale' ? 'rescaling' : 'stopping', details);
    if (change.reply === undefined) return;
    // Whoever started the operation may be gone; it goes on all the same.
    getExternalWorkflowHandle(change.reply)
      .signal(progress, changeStatus(change))
      .catch(() => undefined);
  }
}

function started({ operation, reply }: Origin): Pick<Change, 'operation' | 'reply' | 'details'> {
  return { operation: operation ?? uuid4(), reply, details: '' };
}

function resultOf<C extends Change>(change: C, id: string): C extends RescaleChange ? RescaleResult : StopResult {
  const { outcome } = change;
  if (outcome === undefined) throw jobEnded(id);
  if ('cause' in outcome) throw endWith(outcome.cause);
  return outcome.result as C extends RescaleChange ? RescaleResult : StopResult;
}

function stopFailed({ failure, checkpoint }: RoundReply): Cause {
  const message = `The last checkpoint could not be taken, and the job runs on: ${failure}`;
  return { code: 'stop-failed', kind: 'retry', message, details: { checkpoint } };
}

function jobEnded(id: string): Error {
  const message = `Job "${id}" ended before the operation was done.`;
  return endWith({ code: 'job-ended', kind: 'input', message, details: { id } });
}

function refusal(code: string, message: string, field = ''): Error {
  return endWith({ code, kind: 'input', message, details: { field } });
}

function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
