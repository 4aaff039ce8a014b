import type { CheckpointRound } from './checkpoint-round.ts';
import type { SourceOperator } from './operator.ts';
import type { RestoreStages } from './restore-stages.ts';
import type { Barrier } from './slot.ts';
import { stepMs, Task, turnRecords } from './task.ts';

/** Between two looks for a barrier, whatever the clock says. */
const pollsPerStep = 8;

/** A task whose head is a source: asked for records while its outputs have room, and the place where barriers begin. */
export class SourceTask extends Task {
  #polling = false;
  #barrier: Barrier | undefined;
  /** The barrier of this checkpoint was the last that is read. */
  #stoppedAt: number | undefined;
  #isToEnd = false;

  get watermarkMs(): number {
    return this.head.output.watermarkMs;
  }

  /** Injects a barrier before the next poll. Full outputs do not hold it up. */
  inject(barrier: Barrier): void {
    this.#barrier = barrier;
    // A later barrier says that the round which was to be the last has failed, whoever was not told.
    this.#stoppedAt = barrier.stop === true ? barrier.checkpoint : undefined;
    this.beginCheckpoint(barrier);
    this.#enqueue();
  }

  /** Reads nothing more: the next thing that follows is the end of the input. */
  endInput(): void {
    this.#isToEnd = true;
    this.#enqueue();
  }

  abort(checkpoint: number): void {
    if (this.#stoppedAt !== undefined && this.#stoppedAt <= checkpoint) {
      this.#stoppedAt = undefined;
      this.#enqueue();
    }
    if (this.#barrier === undefined || this.#barrier.checkpoint > checkpoint) return;
    this.#barrier = undefined;
    this.endSpan();
  }

  protected work(nowMs: number): void {
    const { restoring } = this;
    if (restoring !== undefined) {
      this.restoring = undefined;
      return this.own(this.#restore(restoring));
    }
    const barrier = this.#barrier;
    if (barrier !== undefined) {
      this.#barrier = undefined;
      const round = this.host.round(barrier);
      if (round !== undefined) return this.own(this.#checkpoint(round, nowMs));
    }
    if (this.ended || this.blockers > 0) return;
    if (this.#stoppedAt !== undefined) return this.chain.flushIdle(nowMs);
    if (this.#isToEnd) return this.own(this.#end());
    if (this.#polling) return this.chain.flushIdle(nowMs);
    this.#poll(nowMs);
    this.recordsIn = this.head.output.recordsOut;
  }

  #enqueue(): void {
    if (!this.queued && !this.pending && !this.host.stopped) this.host.enqueue(this);
  }

  /** Everything that was in flight behind this source goes before its first record. */
  async #restore(stages: RestoreStages): Promise<void> {
    await this.releaseRestored({ ...stages, inputs: stages.links });
    for (let stage = stages.links; stage < stages.count && !this.host.stopped; stage++) await this.sendReplayed();
  }

  /** Unaligned, what waits in the chain is stored; with a time limit for alignment, there is nothing here to align. */
  #checkpoint(round: CheckpointRound, nowMs: number): Promise<void> {
    return this.checkpoint(round, { alignStartMs: nowMs, overtakes: round.barrier.overtakeAfterMs === 0 });
  }

  #poll(nowMs: number): void {
    const source = this.head.operator as SourceOperator;
    for (let polls = 0; polls < pollsPerStep; polls++) {
      const poll = source.poll(turnRecords);
      if (poll === 'end') return this.own(this.#end());
      if (poll !== 'more') return this.#await(poll, nowMs);
      if (this.blockers > 0) return;
      if (this.host.clock.monotonicMs() - nowMs >= stepMs) break;
    }
    this.host.enqueue(this);
  }

  #await(poll: Promise<void>, nowMs: number): void {
    this.#polling = true;
    this.chain.flushIdle(nowMs);
    poll.then(
      () => {
        this.#polling = false;
        if (!this.host.stopped) this.wake();
      },
      (error: unknown) => this.host.fail(this.head.failed(error)),
    );
  }

  async #end(): Promise<void> {
    const { output } = this.head;
    output.status(false);
    output.watermark(Number.POSITIVE_INFINITY);
    do {
      await this.chain.drain();
      if (this.host.stopped) return;
    } while (!this.chain.drained);
    this.chain.end();
    this.ended = true;
  }
}
