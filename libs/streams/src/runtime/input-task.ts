import { assert, type Timer, unreachable } from '@millrace/kernel';
import { type ElementKind, elementKind } from './elements.ts';
import type { Consumer, ReadableChannel } from './input-channel.ts';
import type { Captured, InputGate } from './input-gate.ts';
import type { Barrier } from './slot.ts';
import { stepMs, Task, turnRecords } from './task.ts';

/** A task that reads channels: gives its head records and watermarks, and aligns barriers or lets them overtake. */
export class InputTask extends Task implements Consumer {
  #gate: InputGate | undefined;
  /** A barrier that overtakes what waits here at the next opportunity. */
  #overtaking: Barrier | undefined;
  /** The barrier that is given time to align, and the timer of that. */
  #aligning: { readonly checkpoint: number; readonly timer: Timer } | undefined;

  get gate(): InputGate {
    return this.#gate as InputGate;
  }

  set gate(gate: InputGate) {
    this.#gate = gate;
  }

  get watermarkMs(): number {
    return this.gate.watermarkMs;
  }

  announced(barrier: Barrier): void {
    const { overtakeAfterMs } = barrier;
    if (overtakeAfterMs === undefined || barrier.checkpoint <= this.lastCheckpoint) return;
    if (overtakeAfterMs === 0) return this.#overtake(barrier);
    if (this.#aligning?.checkpoint === barrier.checkpoint) return;
    this.#stopAligning();
    const timer = this.host.timer.after(overtakeAfterMs, () => this.#overtake(barrier));
    this.#aligning = { checkpoint: barrier.checkpoint, timer };
  }

  abort(checkpoint: number): void {
    if (this.#overtaking !== undefined && this.#overtaking.checkpoint <= checkpoint) this.#overtaking = undefined;
    this.gate.cancelCapture(checkpoint);
    const { barrier } = this.gate;
    if (barrier === undefined || barrier.checkpoint > checkpoint) return;
    this.gate.release();
    this.endSpan();
    this.wake();
  }

  protected work(nowMs: number): void {
    const { gate, restoring } = this;
    if (restoring !== undefined) {
      this.restoring = undefined;
      return this.own(this.releaseRestored(restoring));
    }
    if (this.#overtaking !== undefined && !gate.restoring) return this.#overtakeNow(this.#overtaking, nowMs);
    do {
      if (this.blockers > 0) return;
      const channel = gate.pick();
      if (channel === undefined) return this.chain.flushIdle(nowMs);
      this.#consume(channel, turnRecords);
      if (this.pending) return;
    } while (this.host.clock.monotonicMs() - nowMs < stepMs);
    this.host.enqueue(this);
  }

  protected override captureInputs(checkpoint: number): Promise<readonly Captured[]> {
    return this.gate.capture(checkpoint);
  }

  /** Takes up to `budget` elements from one channel. */
  #consume(channel: ReadableChannel, budget: number): void {
    const { operator } = this.head;
    for (let left = budget; left > 0; left--) {
      const kind = channel.advance();
      if (kind === elementKind.record) {
        this.recordsIn++;
        const pending = operator.record(channel.value, channel.timestampMs, channel.input);
        if (pending !== undefined) return this.own(pending);
      } else {
        this.#control(channel, kind);
        if (this.pending || channel.blocked) return;
      }
      if (this.blockers > 0 || !channel.available) return;
    }
  }

  #control(channel: ReadableChannel, kind: ElementKind): void {
    switch (kind) {
      case elementKind.watermark:
        channel.watermarkMs = channel.timestampMs;
        return this.#watermark();
      case elementKind.status:
        channel.idle = channel.value as boolean;
        return this.#ownIfPending(this.#inputsChanged());
      case elementKind.barrier:
        return this.#barrier(channel, channel.value as Barrier);
      case elementKind.replayed:
        if (this.gate.replayed(channel)) this.own(this.sendReplayed());
        return;
      case elementKind.end:
        return this.#channelEnded(channel);
      case elementKind.none:
        return;
      case elementKind.record:
        assert(false, 'a record is no control element');
        return;
      default:
        unreachable(kind);
    }
  }

  #watermark(): void {
    if (this.gate.updateWatermark()) this.#ownIfPending(this.head.operator.watermark(this.gate.watermarkMs));
  }

  #ownIfPending(pending: void | Promise<void>): void {
    if (pending !== undefined) this.own(pending);
  }

  /** An input went idle, active or away: a watermark that follows comes before `idle` and after `active`. */
  #inputsChanged(): void | Promise<void> {
    const { gate, head } = this;
    const statusChanged = gate.updateStatus();
    const risen = gate.updateWatermark();
    const status = (): void | Promise<void> => (statusChanged ? head.operator.status(gate.idle) : undefined);
    const watermark = (): void | Promise<void> => (risen ? head.operator.watermark(gate.watermarkMs) : undefined);
    const [first, second] = gate.idle ? [watermark, status] : [status, watermark];
    const pending = first();
    return pending === undefined ? second() : pending.then(second);
  }

  #barrier(channel: ReadableChannel, barrier: Barrier): void {
    // From an ended channel a barrier may come after the round is done here; from an aborted round, at any time.
    if (barrier.checkpoint <= this.lastCheckpoint || this.host.round(barrier) === undefined) return;
    if (this.gate.barrier?.checkpoint !== barrier.checkpoint) this.beginCheckpoint(barrier);
    this.gate.arrive(channel, barrier, this.host.clock.monotonicMs());
    this.#checkpointWhenAligned();
  }

  /** The barrier waits no longer. Full outputs do not hold it up; a call of an operator that is open does. */
  #overtake(barrier: Barrier): void {
    if (barrier.checkpoint <= this.lastCheckpoint || this.host.round(barrier) === undefined) return;
    this.#overtaking = barrier;
    if (this.gate.barrier?.checkpoint !== barrier.checkpoint) this.beginCheckpoint(barrier);
    if (!this.queued && !this.pending) this.host.enqueue(this);
  }

  #overtakeNow(barrier: Barrier, nowMs: number): void {
    this.#overtaking = undefined;
    const round = barrier.checkpoint <= this.lastCheckpoint ? undefined : this.host.round(barrier);
    if (round === undefined) return this.host.enqueue(this);
    const { gate } = this;
    const alignStartMs = gate.barrier?.checkpoint === barrier.checkpoint ? gate.alignStartMs : nowMs;
    this.#stopAligning();
    this.own(this.checkpoint(round, { alignStartMs, overtakes: true }));
  }

  #stopAligning(): void {
    this.#aligning?.timer.cancel();
    this.#aligning = undefined;
  }

  #channelEnded(channel: ReadableChannel): void {
    if (this.gate.end(channel)) return this.own(this.#end());
    const changed = this.#inputsChanged();
    if (!this.gate.aligned) this.#ownIfPending(changed);
    else if (changed === undefined) this.#checkpointWhenAligned();
    else this.own(changed.then(() => this.#alignedCheckpoint()));
  }

  #checkpointWhenAligned(): void {
    if (this.gate.aligned) this.own(this.#alignedCheckpoint());
  }

  async #alignedCheckpoint(): Promise<void> {
    const { barrier } = this.gate;
    // Aborted while the end of a channel was being handled.
    if (barrier === undefined) return;
    const round = this.host.round(barrier);
    if (round !== undefined) {
      await this.checkpoint(round, { alignStartMs: this.gate.alignStartMs, overtakes: false });
      this.#stopAligning();
    }
    this.gate.release();
  }

  async #end(): Promise<void> {
    const { operator } = this.head;
    if (this.gate.updateStatus()) await operator.status(false);
    if (this.gate.updateWatermark()) await operator.watermark(Number.POSITIVE_INFINITY);
    do {
      await this.chain.drain();
      if (this.host.stopped) return;
    } while (!this.chain.drained);
    this.chain.end();
    this.ended = true;
    // A barrier may have been waiting for the last channel.
    await this.#alignedCheckpoint();
  }
}
