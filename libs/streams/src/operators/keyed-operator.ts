import { AsyncExecutionController, type Epoch } from '@millrace/aec';
import { assert, isPending, type MaybePromise, MillraceError } from '@millrace/kernel';
import {
  type Codec,
  type DueTimer,
  type KeyedState,
  type KeyValue,
  openKeyedState,
  type PrimitiveKey,
  primitiveKey,
  type StateEntry,
  type StateFacade,
  type StateShape,
} from '@millrace/state';
import type { Counter, TraceContext } from '@millrace/telemetry';
import { type Execution, executionSettings } from '../api/execution.ts';
import type { KeyedLogic, SpawnedWork } from '../api/process.ts';
import type { Operator, OperatorContext, OperatorPart } from '../runtime/operator.ts';
import { KeyedCall, processingTimerInput, spawnedInput, timerInput } from './keyed-call.ts';
import { ProcessingTimers } from './processing-timers.ts';
import { requestBatching } from './request-batching.ts';
import { restoredWatermarkMs, storedWatermark } from './stored-watermark.ts';
import { workingSetOf } from './working-sets.ts';

/** Timers taken from the queue at a time. */
const timersPerTurn = 1000;

export type TimeDomain = 'event' | 'processing';

/**
 * The operator host: the one place where the execution controller (keys, order, watermarks) and keyed state meet. A
 * record becomes a call with its key's lane; its state is pinned while the handler runs; a watermark passes when the
 * records before it and the timers that it fires are done.
 */
export class KeyedOperator implements Operator {
  readonly #logic: KeyedLogic;
  readonly #keys: readonly ((record: unknown) => unknown)[];
  readonly #keyCodec: Codec<never>;
  readonly #execution: Execution | undefined;
  #context: OperatorContext | undefined;
  #controller: AsyncExecutionController<PrimitiveKey, KeyedCall> | undefined;
  #state: KeyedState<StateShape> | undefined;
  #processing: ProcessingTimers | undefined;
  /** The newest watermark that arrived, before a restore too; what lateness is judged by. */
  #watermarkMs = Number.NEGATIVE_INFINITY;
  /** The restored watermark while it has not been passed on: those after us start anew and wait for it. */
  #unpassedMs = Number.NEGATIVE_INFINITY;
  /** Timers of the advancing watermark, and what they spawned, that have not finished. */
  #timersRunning = 0;
  #timersDone: (() => void) | undefined;
  #lateCounter: Counter | undefined;
  /** Records dropped because they came too late and no side output takes them. */
  lateDropped = 0;

  constructor(
    logic: KeyedLogic,
    keys: readonly ((record: never) => unknown)[],
    keyCodec: Codec<never>,
    execution?: Execution,
  ) {
    this.#execution = execution;
    this.#logic = logic;
    this.#keys = keys as readonly ((record: unknown) => unknown)[];
    this.#keyCodec = keyCodec;
  }

  get uid(): string {
    return this.#opened.uid;
  }

  async open(context: OperatorContext): Promise<void> {
    const { slot } = context;
    const execution = executionSettings(this.#execution, slot.settings.inFlightLimit);
    const table = await slot.store.openTable(
      {
        job: slot.job,
        operator: context.uid,
        subtask: context.subtask,
        keyGroups: context.keyGroups,
        maxParallelism: slot.maxParallelism,
        generation: slot.generation,
      },
      context.restoredTables,
    );
    this.#state = await openKeyedState({
      table,
      restored: context.restoredTables.length > 0,
      handles: context.restoredTables,
      shape: this.#logic.shape,
      keyCodec: this.#keyCodec,
      workingSet: workingSetOf(slot),
      clock: slot.clock,
      batcher: requestBatching(execution.inFlightLimit),
      onFailure: (error) => context.fail(error),
    });
    this.#watermarkMs = restoredWatermarkMs(slot.restore ?? [], context);
    this.#unpassedMs = this.#watermarkMs;
    this.#context = context;
    this.#lateCounter = slot.telemetry.metrics.counter(
      'millrace_late_records_dropped_total',
      'Records that came after the allowed lateness and went to no side output.',
    );
    this.#controller = new AsyncExecutionController({
      ...execution,
      handle: (call, _key, epoch) => this.#handle(call, epoch),
      onFailure: (error) => context.fail(error),
    });
    this.#processing = new ProcessingTimers({
      queue: this.#state.processingTimers,
      clock: slot.clock,
      fire: (timer) => this.#deriveProcessingTimer(timer),
      room: () => this.#keyed.room() ?? this.#aec.room(),
      failed: (error) => context.fail(error),
    });
    this.#logic.open?.(context);
    if (this.#watermarkMs < Number.POSITIVE_INFINITY) this.#processing.start();
  }

  /** Does `work` when every record before it has finished, and before the next one starts. */
  between(work: () => void): void | Promise<void> {
    this.#processing?.release();
    return this.#aec.mark(work);
  }

  record(value: unknown, timestampMs: number, input: number): void | Promise<void> {
    const logic = this.#logic;
    this.#processing?.release();
    if (logic.isLate?.(timestampMs, this.#watermarkMs) === true) return this.late(value, timestampMs, input);
    const keyOf = this.#keys[input] as (record: unknown) => unknown;
    const key = keyOf(value);
    const namespace = logic.namespaceOf?.(timestampMs);
    const call = new KeyedCall(this, key, namespace, timestampMs, this.#watermarkMs, value, input);
    const room = this.#keyed.room();
    if (room !== undefined) return this.#admitLater(room, call);
    return this.#aec.admit(primitiveKey(key), call);
  }

  watermark(watermarkMs: number): void | Promise<void> {
    this.#processing?.release();
    if (watermarkMs <= this.#watermarkMs) return this.#passRestored();
    this.#unpassedMs = Number.NEGATIVE_INFINITY;
    this.#watermarkMs = watermarkMs;
    if (watermarkMs < Number.POSITIVE_INFINITY) return this.#advance(watermarkMs);
    const firing = this.#processing?.end();
    return isPending(firing) ? firing.then(() => this.#advance(watermarkMs)) : this.#advance(watermarkMs);
  }

  status(idle: boolean): void | Promise<void> {
    this.#processing?.release();
    const { output } = this.#opened;
    const passed = this.#passRestored();
    const mark = (): void | Promise<void> => this.#aec.mark(() => output.status(idle));
    return passed === undefined ? mark() : passed.then(mark);
  }

  drain(): void | Promise<void> {
    const firing = this.#processing?.hold();
    const drained = isPending(firing) ? firing.then(() => this.#aec.drain()) : this.#aec.drain();
    return isPending(drained) ? drained.then(() => this.#keyed.settled()) : this.#keyed.settled();
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<OperatorPart> {
    const watermark = storedWatermark(this.#watermarkMs);
    const table = this.#keyed.snapshot(checkpoint, parent);
    this.#processing?.release();
    return { table: await table, ...watermark };
  }

  complete(): void {}

  abort(): void {}

  inFlight(): number {
    return (this.#controller?.inFlight ?? 0) + (this.#processing?.taken ?? 0);
  }

  buffered(): number {
    return this.#controller?.buffered ?? 0;
  }

  async close(): Promise<void> {
    void this.#processing?.end();
    this.#logic.close?.();
    await this.#state?.close();
  }

  /** For the calls of this operator. */
  emit(value: unknown, timestampMs: number, side: string | undefined): void {
    this.#opened.output.emit(value, timestampMs, side);
  }

  facade(entry: StateEntry, call: KeyedCall): StateFacade<StateShape> {
    return this.#keyed.facade(entry, call);
  }

  enterPane(call: KeyedCall, namespace: KeyValue | undefined): StateEntry {
    return this.#keyed.enter(call.key, namespace);
  }

  processingMs(): number {
    assert(this.#processing !== undefined, 'operator used before it was opened');
    return this.#processing.nowMs();
  }

  registerTimer(entry: StateEntry, domain: TimeDomain, timeMs: number): void {
    const handler = domain === 'event' ? 'onTimer' : 'onProcessingTimer';
    if (this.#logic[handler] === undefined) {
      throw new MillraceError('bad-argument', `${this.uid} registers a timer and has no ${handler}`);
    }
    if (!Number.isFinite(timeMs)) throw new MillraceError('bad-argument', `a timer of ${this.uid} is at ${timeMs}`);
    if (domain === 'event') {
      this.#keyed.eventTimers.register(entry, timeMs);
    } else {
      this.#keyed.processingTimers.register(entry, timeMs);
      this.#processing?.registered(timeMs);
    }
  }

  deleteTimer(entry: StateEntry, domain: TimeDomain, timeMs: number): void {
    const queue = domain === 'event' ? this.#keyed.eventTimers : this.#keyed.processingTimers;
    queue.delete(entry, timeMs);
  }

  /** A record that came too late. */
  late(value: unknown, timestampMs: number, input: number): void {
    const late = this.#logic.lateByInput === undefined ? this.#logic.late : this.#logic.lateByInput[input];
    if (late !== undefined) return this.emit(value, timestampMs, late);
    this.lateDropped++;
    this.#lateCounter?.add(1, { operator: this.uid });
  }

  spawn(parent: KeyedCall, work: SpawnedWork<unknown, StateShape, unknown>): void {
    const { key, namespace, timestampMs, watermarkMs, ofAdvance } = parent;
    const call = new KeyedCall(this, key, namespace, timestampMs, watermarkMs, work, spawnedInput);
    call.ofAdvance = ofAdvance;
    if (ofAdvance) this.#timersRunning++;
    this.#aec.derive(primitiveKey(key), call, parent.epoch);
  }

  fail(error: unknown): void {
    this.#aec.fail(error);
  }

  get #opened(): OperatorContext {
    assert(this.#context !== undefined, 'operator used before it was opened');
    return this.#context;
  }

  get #aec(): AsyncExecutionController<PrimitiveKey, KeyedCall> {
    assert(this.#controller !== undefined, 'operator used before it was opened');
    return this.#controller;
  }

  get #keyed(): KeyedState<StateShape> {
    assert(this.#state !== undefined, 'operator used before it was opened');
    return this.#state;
  }

  #handle(call: KeyedCall, epoch: Epoch): void | Promise<void> {
    call.epoch = epoch;
    call.entry = this.#keyed.enter(call.key, call.namespace);
    const pending = call.input >= 0 ? this.#logic.onRecord(call.value, call.input, call) : this.#derived(call);
    if (!isPending(pending)) return this.#settle(call);
    return pending.then(() => this.#settle(call));
  }

  #derived(call: KeyedCall): void | Promise<void> {
    if (call.input === timerInput) return this.#logic.onTimer?.(call.timestampMs, call);
    if (call.input === processingTimerInput) return this.#logic.onProcessingTimer?.(call.value as number, call);
    return (call.value as SpawnedWork<unknown, StateShape, unknown>)(call);
  }

  #settle(call: KeyedCall): void {
    call.seal();
    this.#keyed.leave(call.entry as StateEntry);
    if (call.paneEntries !== undefined) for (const entry of call.paneEntries) this.#keyed.leave(entry);
    if (call.ofAdvance) this.#advanceDone();
  }

  #advanceDone(): void {
    if (--this.#timersRunning === 0) {
      this.#timersDone?.();
      this.#timersDone = undefined;
    }
  }

  /** What it fires had fired before the checkpoint; it only leaves in its place. */
  #passRestored(): void | Promise<void> {
    const watermarkMs = this.#unpassedMs;
    if (watermarkMs === Number.NEGATIVE_INFINITY) return;
    this.#unpassedMs = Number.NEGATIVE_INFINITY;
    const { output } = this.#opened;
    return this.#aec.mark(() => output.watermark(watermarkMs));
  }

  async #admitLater(room: Promise<void>, call: KeyedCall): Promise<void> {
    await room;
    for (let more = this.#keyed.room(); more !== undefined; more = this.#keyed.room()) await more;
    await this.#aec.admit(primitiveKey(call.key), call);
  }

  #advance(watermarkMs: number): void | Promise<void> {
    const { output } = this.#opened;
    return this.#aec.watermark(
      () => output.watermark(watermarkMs),
      (epoch) => this.#fireAll(watermarkMs, epoch),
    );
  }

  #fireAll(watermarkMs: number, epoch: Epoch): void | Promise<void> {
    const fired = this.#fire('event', watermarkMs, epoch);
    if (watermarkMs < Number.POSITIVE_INFINITY || this.#logic.closesAtEnd !== true) return fired;
    const close = (): void | Promise<void> => this.#fire('processing', watermarkMs, epoch);
    return isPending(fired) ? fired.then(close) : close();
  }

  /**
   * Fires the timers up to `timeMs`, in order of time. Timers that fired may register more that are due, so it ends
   * only when none is running and none is left.
   */
  #fire(domain: TimeDomain, timeMs: number, epoch: Epoch): void | Promise<void> {
    for (;;) {
      const due = this.#popDue(domain, timeMs);
      if (isPending(due)) return this.#fireSlowly(domain, timeMs, epoch, due);
      if (due.length === 0 && this.#timersRunning === 0) return;
      if (due.length === 0 || this.#aec.room() !== undefined) return this.#fireSlowly(domain, timeMs, epoch, due);
      for (const timer of due) this.#deriveTimer(domain, timer, epoch);
    }
  }

  async #fireSlowly(
    domain: TimeDomain,
    timeMs: number,
    epoch: Epoch,
    first: readonly DueTimer[] | Promise<readonly DueTimer[]>,
  ): Promise<void> {
    let due = await first;
    for (;;) {
      for (const timer of due) {
        for (let room = this.#aec.room(); room !== undefined; room = this.#aec.room()) await room;
        this.#deriveTimer(domain, timer, epoch);
      }
      due = await this.#popDue(domain, timeMs);
      if (due.length > 0) continue;
      if (this.#timersRunning === 0) return;
      await new Promise<void>((resolve) => {
        this.#timersDone = resolve;
      });
      due = await this.#popDue(domain, timeMs);
      if (due.length === 0 && this.#timersRunning === 0) return;
    }
  }

  #popDue(domain: TimeDomain, timeMs: number): MaybePromise<readonly DueTimer[]> {
    const queue = domain === 'event' ? this.#keyed.eventTimers : this.#keyed.processingTimers;
    return queue.popDue(timeMs, timersPerTurn);
  }

  /** A timer of the advancing watermark, which waits for it. */
  #deriveTimer(domain: TimeDomain, timer: DueTimer, epoch: Epoch): void {
    this.#timersRunning++;
    const call = domain === 'event' ? this.#eventTimerCall(timer) : this.#processingTimerCall(timer);
    call.ofAdvance = true;
    this.#aec.derive(primitiveKey(timer.key), call, epoch);
  }

  #deriveProcessingTimer(timer: DueTimer): void {
    this.#aec.derive(primitiveKey(timer.key), this.#processingTimerCall(timer));
  }

  #eventTimerCall({ key, namespace, timeMs }: DueTimer): KeyedCall {
    return new KeyedCall(this, key, namespace, timeMs, this.#watermarkMs, undefined, timerInput);
  }

  /** What it emits has the first time that is not late. */
  #processingTimerCall({ key, namespace, timeMs }: DueTimer): KeyedCall {
    const watermarkMs = this.#watermarkMs;
    const eventMs = Number.isFinite(watermarkMs) ? watermarkMs + 1 : 0;
    return new KeyedCall(this, key, namespace, eventMs, watermarkMs, timeMs, processingTimerInput);
  }
}
