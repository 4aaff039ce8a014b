/**
 * One slot of an attempt: subtask i of every operator, cooperatively on one thread.
 *
 * Guarantees. A task's operators are called from one place, in order, never while a returned promise is open. A barrier
 * is injected between two polls of a source; in every task, draining, the snapshot and the forwarding of the barrier are
 * one step with respect to records. The first failure stops every task before its next call and rejects `run`.
 */
import { assert, MillraceError } from '@millrace/kernel';
import type { Tracer } from '@millrace/telemetry';
import { isSourceOperator, type JobGraph } from '../graph/job-graph.ts';
import type { ChainMember } from './chain.ts';
import { CheckpointRound } from './checkpoint-round.ts';
import { downstreamWatermark } from './downstream-watermark.ts';
import { type InFlight, type InFlightFileName, storeInFlight } from './in-flight.ts';
import { type InFlightAround, inFlightChannels } from './in-flight-around.ts';
import { type RestoredInFlight, restoreInFlight } from './in-flight-restore.ts';
import { InputTask } from './input-task.ts';
import type { OperatorContext } from './operator.ts';
import { operatorFailure } from './operator-failure.ts';
import { restoredList } from './redistribute.ts';
import { checkRestoreFits } from './restore-fit.ts';
import { restoreStages } from './restore-stages.ts';
import { immediateScheduler, type Scheduler } from './scheduler.ts';
import type { Barrier, Slot, SlotContext, SlotSnapshot, SlotStats } from './slot.ts';
import { registerSlotMetrics } from './slot-metrics.ts';
import { slotStats } from './slot-stats.ts';
import { SlotTimers } from './slot-timers.ts';
import { type WiredSlot, type WiringHost, wireSlot } from './slot-wiring.ts';
import { SourceTask } from './source-task.ts';
import type { Task } from './task.ts';

/** How long the slot keeps the thread before frames, timers and promises have their turn. */
const sliceMs = 4;
/** The same where the clock stands still. */
const sliceSteps = 256;

export interface SlotOptions {
  /** Default: `setImmediate`. */
  readonly scheduler?: Scheduler;
}

/** Builds a slot; `open` it, then `run` it. */
export function createSlot(graph: JobGraph, context: SlotContext, options: SlotOptions = {}): Slot {
  return new SlotRuntime(graph, context, options.scheduler ?? immediateScheduler);
}

type State = 'created' | 'open' | 'running' | 'finished' | 'failed';

class SlotRuntime implements Slot, WiringHost {
  readonly clock: SlotContext['clock'];
  readonly tracer: Tracer;
  readonly subtask: number;
  readonly timer: SlotTimers;
  readonly #context: SlotContext;
  readonly #graph: JobGraph;
  readonly #scheduler: Scheduler;
  readonly #wired: WiredSlot;
  readonly #members: readonly ChainMember[];
  readonly #sources: readonly SourceTask[];
  readonly #ready: Task[] = [];
  readonly #finished = Promise.withResolvers<void>();
  readonly #stopMetrics: Array<() => void> = [];
  /** The newest round, and the one before it for late questions. */
  readonly #rounds: CheckpointRound[] = [];
  #abortedUpTo = Number.NEGATIVE_INFINITY;
  /** The newest barrier given to the sources. */
  #injected = Number.NEGATIVE_INFINITY;
  #state: State = 'created';
  #failure: MillraceError | undefined;
  #pumping = false;
  #opening: Promise<Array<PromiseSettledResult<void>>> = Promise.resolve([]);
  #closing: Promise<void> | undefined;

  constructor(graph: JobGraph, context: SlotContext, scheduler: Scheduler) {
    this.#context = context;
    this.#graph = graph;
    this.#scheduler = scheduler;
    this.clock = context.clock;
    this.tracer = context.telemetry.tracer;
    this.subtask = context.subtask;
    this.timer = new SlotTimers(context.clock, context.settings.frameDelayMs, (error) => this.fail(error));
    this.#wired = wireSlot(graph, context, this);
    this.#members = this.#wired.tasks.flatMap((task) => task.chain.members);
    this.#sources = this.#wired.tasks.filter((task) => task instanceof SourceTask);
    // A failure may come before anyone waits in `run`.
    this.#finished.promise.catch(() => undefined);
  }

  get stopped(): boolean {
    return this.#state === 'failed' || this.#state === 'finished';
  }

  async open(): Promise<void> {
    assert(this.#state === 'created', 'a slot is opened once');
    let inFlight: RestoredInFlight | undefined;
    try {
      checkRestoreFits(this.#graph, this.#context);
      inFlight = await restoreInFlight(this.#graph, this.#context);
    } catch (error) {
      this.fail(error);
      throw error;
    }
    this.#context.transport.listen({
      onFrame: (fromSlot, edge, frame) => this.#onFrame(fromSlot, edge, frame),
      onCredit: (toSlot, edge, bytes) => this.#onCredit(toSlot, edge, bytes),
      onBroken: (peerSlot, reason) => this.fail(this.#broken(peerSlot, reason)),
    });
    this.#opening = Promise.allSettled(this.#members.map((member) => this.#open(member)));
    for (const result of await this.#opening) if (result.status === 'rejected') this.fail(result.reason);
    if (this.#failure !== undefined) {
      await this.#close();
      throw this.#failure;
    }
    if (inFlight !== undefined) this.#restore(inFlight);
    this.#state = 'open';
    this.#stopMetrics.push(...registerSlotMetrics(this.#context, this.#wired.tasks));
    for (const inputs of this.#wired.remoteInputs) for (const input of inputs.values()) input.open();
  }

  async run(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'running';
      for (const task of this.#wired.tasks) {
        task.wake();
      }
      this.#schedule();
    }
    assert(this.#state !== 'created', 'a slot is opened before it runs');
    try {
      await this.#finished.promise;
    } finally {
      await this.#close();
    }
  }

  checkpoint(barrier: Barrier): Promise<SlotSnapshot> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.stopped) return Promise.reject(abortedError(barrier.checkpoint));
    const known = this.#rounds.find((round) => round.barrier.checkpoint === barrier.checkpoint);
    if (known !== undefined && this.#injected >= barrier.checkpoint) return known.done;
    const round = this.round(barrier);
    if (round === undefined) return Promise.reject(abortedError(barrier.checkpoint));
    this.#injected = barrier.checkpoint;
    for (const source of this.#sources) source.inject(barrier);
    return round.done;
  }

  async complete(checkpoint: number, last: boolean): Promise<void> {
    if (this.#state === 'finished') return;
    if (this.#failure !== undefined) throw this.#failure;
    await Promise.all(
      this.#members.map(async (member) => {
        try {
          await member.operator.complete(checkpoint);
        } catch (error) {
          throw operatorFailure(error, { operator: member.uid, subtask: this.subtask });
        }
      }),
    );
    // A failure that came meanwhile wins: the promise of `run` is settled once.
    if (last && !this.stopped) {
      this.#state = 'finished';
      this.#finished.resolve();
    }
  }

  endInputs(): void {
    if (!this.stopped) for (const source of this.#sources) source.endInput();
  }

  abort(checkpoint: number): void {
    if (checkpoint <= this.#abortedUpTo || this.stopped) return;
    this.#abortedUpTo = checkpoint;
    for (const round of this.#rounds) if (round.barrier.checkpoint <= checkpoint) round.abort(abortedError(checkpoint));
    for (const task of this.#wired.tasks) task.abort(checkpoint);
    for (const member of this.#members) member.operator.abort(checkpoint);
  }

  stats(): SlotStats {
    return slotStats(this.subtask, this.#wired.tasks);
  }

  async cancel(reason: Error): Promise<void> {
    this.fail(MillraceError.from(reason, 'cancelled'));
    await this.#close();
  }

  // What the tasks see.

  enqueue(task: Task): void {
    task.queued = true;
    this.#ready.push(task);
    if (!this.#pumping && this.#state === 'running') this.#schedule();
  }

  storeInFlight(
    around: InFlightAround,
    { parent, ...name }: Omit<InFlightFileName, 'subtask'> & { readonly parent: string | undefined },
  ): Promise<InFlight | undefined> {
    const channels = inFlightChannels(this.#graph, around, this.subtask);
    return storeInFlight(channels, {
      files: this.#context.inFlightFiles,
      name: { ...name, subtask: this.subtask },
      parent,
    });
  }

  round(barrier: Barrier): CheckpointRound | undefined {
    const { checkpoint } = barrier;
    if (checkpoint <= this.#abortedUpTo) return undefined;
    const newest = this.#rounds[0];
    if (newest?.barrier.checkpoint === checkpoint) return newest.aborted ? undefined : newest;
    if (newest !== undefined && newest.barrier.checkpoint > checkpoint) return undefined;
    // One round at a time: a newer one means that the older was given up, and the call that said so was lost.
    if (newest?.running) this.abort(newest.barrier.checkpoint);
    const round = new CheckpointRound(barrier, this.subtask, this.#wired.tasks.length);
    this.#rounds.unshift(round);
    this.#rounds.length = Math.min(2, this.#rounds.length);
    return round;
  }

  fail(error: unknown): void {
    if (this.stopped) return;
    const failure = MillraceError.from(error);
    this.#state = 'failed';
    this.#failure = failure;
    for (const round of this.#rounds) round.abort(failure);
    this.#finished.reject(failure);
  }

  operatorFailed(uid: string, error: unknown): unknown {
    const failure = operatorFailure(error, { operator: uid, subtask: this.subtask });
    this.fail(failure);
    return failure;
  }

  #schedule(): void {
    this.#pumping = true;
    this.#scheduler(() => this.#pump());
  }

  #pump(): void {
    let nowMs = this.clock.monotonicMs();
    const untilMs = nowMs + sliceMs;
    for (let steps = 0; steps < sliceSteps && nowMs < untilMs && !this.stopped; steps++) {
      const task = this.#ready.shift();
      if (task === undefined) break;
      task.queued = false;
      nowMs = task.step(nowMs);
    }
    this.#pumping = false;
    if (this.#ready.length > 0 && !this.stopped) this.#schedule();
  }

  /** What was in flight goes before everything else. */
  #restore(inFlight: RestoredInFlight): void {
    const { plan, tasks } = this.#wired;
    for (const [chain, task] of tasks.entries()) {
      const stages = restoreStages(chain, tasks.length, inFlight.unchanged);
      task.restoreFirst(stages);
      if (task instanceof InputTask) task.gate.restore(inFlight.replay(plan.chains[chain]?.inputs ?? []), stages);
      for (const { link } of task.chain.members) {
        if (link === undefined) continue;
        const edge = this.#graph.edges[link.edge] as JobGraph['edges'][number];
        inFlight.eachWaiting(edge, (value, timestampMs) => link.restore(value, timestampMs));
      }
    }
  }

  async #open(member: ChainMember): Promise<void> {
    const { uid } = member;
    const { keyGroups, subtask, parallelism, restore = [] } = this.#context;
    const tables = restore.filter((part) => part.operator === uid).flatMap((part) => part.table ?? []);
    const downstream = isSourceOperator(member.operator) ? downstreamWatermark(this.#wired, member) : undefined;
    const context: OperatorContext = {
      ...(downstream === undefined ? {} : { downstreamWatermarkMs: downstream }),
      slot: this.#context,
      uid,
      subtask,
      keyGroups,
      output: member.output,
      restoredTables: tables.filter(
        (handle) => handle.keyGroups.start <= keyGroups.end && keyGroups.start <= handle.keyGroups.end,
      ),
      restoredList: restoredList(restore, { operator: uid, subtask, parallelism }),
      fail: (error) => void member.failed(error),
    };
    try {
      await member.operator.open(context);
    } catch (error) {
      throw operatorFailure(error, { operator: uid, subtask });
    }
  }

  #onFrame(fromSlot: number, edge: number, frame: Uint8Array): void {
    if (this.stopped) return;
    const input = this.#wired.remoteInputs[edge]?.get(fromSlot);
    if (input === undefined) this.fail(this.#broken(fromSlot, new Error(`a frame of unknown edge ${edge}`)));
    else input.onFrame(frame);
  }

  #onCredit(toSlot: number, edge: number, bytes: number): void {
    if (!this.stopped) this.#wired.remoteOutputs[edge]?.get(toSlot)?.onCredit(bytes);
  }

  #broken(peerSlot: number, reason: Error): MillraceError {
    return new MillraceError('channel-broken', `slot ${this.subtask} lost its channels with slot ${peerSlot}`, {
      details: { slot: this.subtask, peerSlot },
      cause: reason,
    });
  }

  #close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    this.timer.close();
    for (const stop of this.#stopMetrics) stop();
    const opened = await this.#opening;
    const members = this.#members.filter((_, i) => opened[i]?.status === 'fulfilled');
    const closed = await Promise.allSettled(members.map(async (member) => member.operator.close()));
    for (const [i, result] of closed.entries()) {
      if (result.status === 'fulfilled') continue;
      const error = MillraceError.from(result.reason).message;
      this.#context.telemetry.log.warn('operator did not close', { operator: members[i]?.uid, error });
    }
  }
}

function abortedError(checkpoint: number): MillraceError {
  return new MillraceError('checkpoint-aborted', `checkpoint ${checkpoint} was aborted`, { details: { checkpoint } });
}
