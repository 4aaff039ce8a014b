import type { Clock } from '@millrace/kernel';
import { isKind } from '@millrace/kernel';
import type { Span, Tracer } from '@millrace/telemetry';
import type { Chain, ChainMember, Overtaken, WaitingInChain } from './chain.ts';
import type { CheckpointRound } from './checkpoint-round.ts';
import { type InFlight, type InFlightFileName, inFlightBytes } from './in-flight.ts';
import type { InFlightAround } from './in-flight-around.ts';
import type { Wakeable } from './input-channel.ts';
import type { Captured } from './input-gate.ts';
import type { Producer } from './output-channel.ts';
import type { OutputTimer } from './remote-output.ts';
import type { RestoreStages } from './restore-stages.ts';
import type { Barrier, OperatorSnapshot } from './slot.ts';

/** What a task needs of its slot. */
export interface TaskHost {
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly subtask: number;
  readonly timer: OutputTimer;
  /** Nothing may be called any more: failed or cancelled. */
  readonly stopped: boolean;
  /** Queues the task for a step. */
  enqueue(task: Task): void;
  /** Makes what a barrier overtook durable; undefined when it was nothing worth telling. */
  storeInFlight(
    around: InFlightAround,
    name: Omit<InFlightFileName, 'subtask'> & { readonly parent: string | undefined },
  ): Promise<InFlight | undefined>;
  /** The round of a barrier; undefined when it was aborted or a newer one has begun. */
  round(barrier: Barrier): CheckpointRound | undefined;
  fail(error: unknown): void;
}

/** Where a task's time goes; milliseconds. */
export interface TaskTimes {
  busyMs: number;
  idleMs: number;
  backpressuredMs: number;
}

/** Records that a task takes before it looks at the time. */
export const turnRecords = 32;
/** How long one step may last before other tasks have their turn. */
export const stepMs = 2;
/** Failures of a snapshot that no later round can mend: writes are lost, or the thread that saves them. */
const tableLost: readonly string[] = ['state-remote-broken', 'lsm-worker-failed'];

/**
 * One chain's subtask. The slot steps it; a step ends when there is nothing to do, the time is up, an operator
 * returned a promise, or an output is full.
 */
export abstract class Task implements Producer, Wakeable {
  readonly id: number;
  readonly times: TaskTimes = { busyMs: 0, idleMs: 0, backpressuredMs: 0 };
  blockers = 0;
  /** In the slot's queue. */
  queued = false;
  /** The newest barrier whose turn has come, whatever became of it. */
  lastCheckpoint = Number.NEGATIVE_INFINITY;
  /** The end of the input has passed through. */
  ended = false;
  recordsIn = 0;
  protected readonly host: TaskHost;
  /** An operator, a checkpoint or the end is being awaited. */
  protected pending = false;
  /** What was in flight is restored: the stages of that, until the task has begun with it. */
  protected restoring: RestoreStages | undefined;
  #chain: Chain | undefined;
  #waitingSinceMs = 0;
  #span: Span | undefined;
  #spanEnd: (() => void) | undefined;

  constructor(id: number, host: TaskHost) {
    this.id = id;
    this.host = host;
    this.#waitingSinceMs = host.clock.monotonicMs();
  }

  get chain(): Chain {
    return this.#chain as Chain;
  }

  set chain(chain: Chain) {
    this.#chain = chain;
  }

  get head(): ChainMember {
    return this.chain.head;
  }

  /** The watermark that the head has been given, or has given. */
  abstract get watermarkMs(): number;
  protected abstract work(nowMs: number): void;
  /** Forgets a barrier that is not complete yet. */
  abstract abort(checkpoint: number): void;

  wake(): void {
    if (this.queued || this.pending || this.blockers > 0) return;
    this.host.enqueue(this);
  }

  /** One step; returns the time at its end. */
  step(nowMs: number): number {
    const waitedMs = nowMs - this.#waitingSinceMs;
    if (this.pending) this.times.busyMs += waitedMs;
    else if (this.blockers > 0) this.times.backpressuredMs += waitedMs;
    else this.times.idleMs += waitedMs;
    if (!this.pending) {
      try {
        this.work(nowMs);
      } catch (error) {
        this.host.fail(this.head.failed(error));
      }
    }
    const endMs = this.host.clock.monotonicMs();
    this.times.busyMs += endMs - nowMs;
    this.#waitingSinceMs = endMs;
    return endMs;
  }

  /** Takes no step before `promise` resolves. */
  protected own(promise: Promise<unknown>): void {
    this.pending = true;
    promise.then(
      () => {
        const nowMs = this.host.clock.monotonicMs();
        this.times.busyMs += nowMs - this.#waitingSinceMs;
        this.#waitingSinceMs = nowMs;
        this.pending = false;
        if (!this.queued && !this.host.stopped) this.host.enqueue(this);
      },
      (error: unknown) => this.host.fail(this.head.failed(error)),
    );
  }

  /** The first sign of a barrier: from here its span runs. */
  protected beginCheckpoint(barrier: Barrier): void {
    this.endSpan();
    const attributes = {
      checkpoint: barrier.checkpoint,
      operator: this.head.uid,
      subtask: this.host.subtask,
    };
    const work = (span: Span): Promise<void> => {
      this.#span = span;
      return new Promise((resolve) => {
        this.#spanEnd = resolve;
      });
    };
    void this.host.tracer
      .span('subtask.checkpoint', { parent: barrier.parent, attributes }, work)
      .catch(() => undefined);
  }

  protected endSpan(): void {
    this.#spanEnd?.();
    this.#spanEnd = undefined;
    this.#span = undefined;
  }

  /** Before the first step: elements that were in flight go before all others. */
  restoreFirst(stages: RestoreStages): void {
    this.restoring = stages;
  }

  /** The first step of a restore: lets go what waited in the chain; the stages before have nothing here. */
  protected async releaseRestored({ links, inputs }: RestoreStages): Promise<void> {
    for (let stage = 0; stage < links; stage++) this.chain.replayed();
    this.chain.release();
    if (links < inputs) await this.sendReplayed();
  }

  /** Drains the chain, then says that this stage of the restore has passed here. */
  protected async sendReplayed(): Promise<void> {
    do {
      await this.chain.drain();
      if (this.host.stopped) return;
    } while (!this.chain.drained);
    this.chain.replayed();
  }

  /** Copies what the barrier overtakes at the inputs; resolves when that is complete. */
  protected captureInputs(_checkpoint: number): Promise<readonly Captured[]> {
    return Promise.resolve([]);
  }

  /**
   * The snapshot, and forwarding the barrier, as one step: when the operators have drained, as the barrier has arrived
   * everywhere; or, when it overtakes, when each has drained what it had begun. Then what waits around the operators
   * is copied, too. Durability is awaited by the round, not by the task.
   */
  protected async checkpoint(
    round: CheckpointRound,
    { alignStartMs, overtakes }: { readonly alignStartMs: number; readonly overtakes: boolean },
  ): Promise<void> {
    const { chain } = this;
    const { clock } = this.host;
    const { checkpoint } = round.barrier;
    let holding = overtakes;
    const late = overtakes ? undefined : this.#late(round.barrier, () => void (holding = true));
    const drainStartMs = clock.monotonicMs();
    const wallOffsetMs = clock.nowMs() - drainStartMs;
    const inFlight = chain.inFlight();
    for (let done = false; !done; ) {
      if (holding) await chain.hold();
      else await (late === undefined ? chain.drain() : Promise.race([late.passed, chain.drain()]));
      if (this.host.stopped || round.aborted) {
        late?.cancel();
        if (holding) chain.release();
        return this.endSpan();
      }
      done = holding ? chain.held : chain.drained;
    }
    late?.cancel();
    // No await from here to the end: the snapshot and the barrier belong to the same instant.
    this.lastCheckpoint = checkpoint;
    const flushStartMs = clock.monotonicMs();
    const parent = this.#span?.context ?? round.barrier.parent;
    const spanEnd = this.#spanEnd;
    this.#spanEnd = undefined;
    const { ended } = this;
    const parts = chain.snapshot(checkpoint, parent);
    const waiting = holding ? chain.waiting() : [];
    const inputs = holding ? this.captureInputs(checkpoint) : undefined;
    const outputs = chain.forward(holding ? { ...round.barrier, overtakeAfterMs: 0 } : round.barrier);
    if (holding) chain.release();
    const stored = this.#store({ inputs, waiting, outputs }, { checkpoint, parent });
    Promise.all([parts, stored])
      .then(([operators, overtaken]) => {
        const endMs = clock.monotonicMs();
        const alignMs = drainStartMs - alignStartMs;
        const drainMs = flushStartMs - drainStartMs;
        const record = (name: string, startMs: number, stopMs: number): void =>
          this.host.tracer.record(name, { parent, startMs: startMs + wallOffsetMs, endMs: stopMs + wallOffsetMs });
        record('subtask.align', alignStartMs, drainStartMs);
        record('subtask.drain', drainStartMs, flushStartMs);
        record('subtask.flush', flushStartMs, endMs);
        const [head, ...rest] = operators;
        const all =
          overtaken === undefined ? operators : [{ ...(head as OperatorSnapshot), inFlight: overtaken }, ...rest];
        const overtakenBytes = inFlightBytes(overtaken);
        round.add({ operators: all, ended, alignMs, drainMs, flushMs: endMs - flushStartMs, inFlight, overtakenBytes });
      })
      .catch((error: unknown) => {
        // What may pass fails the round only; the state is still in memory for the next one, unless it was lost.
        round.abort(error);
        if (!isKind(error, 'retry') || tableLost.includes(error.code)) this.host.fail(error);
      })
      .finally(() => spanEnd?.());
  }

  /** With a time limit for alignment: a promise that resolves when it is over. */
  #late(barrier: Barrier, passed: () => void): { readonly passed: Promise<void>; cancel(): void } | undefined {
    const { overtakeAfterMs } = barrier;
    if (overtakeAfterMs === undefined) return undefined;
    const settle = Promise.withResolvers<void>();
    const timer = this.host.timer.after(overtakeAfterMs, () => {
      passed();
      settle.resolve();
    });
    return { passed: settle.promise, cancel: () => timer.cancel() };
  }

  async #store(
    { inputs, waiting, outputs }: Around,
    name: { readonly checkpoint: number; readonly parent: string | undefined },
  ): Promise<InFlight | undefined> {
    const overtaken = await Promise.all(outputs.map(async (one) => ({ ...one, elements: await one.elements })));
    return this.host.storeInFlight(
      { inputs: (await inputs) ?? [], waiting, outputs: overtaken },
      {
        ...name,
        operator: this.head.uid,
      },
    );
  }
}

/** What a barrier overtook, and does not know yet. */
interface Around {
  readonly inputs: Promise<readonly Captured[]> | undefined;
  readonly waiting: readonly WaitingInChain[];
  readonly outputs: readonly Overtaken[];
}
