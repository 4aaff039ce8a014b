import {
  assert,
  type Clock,
  defaultMaxParallelism,
  keyGroupRange,
  MillraceError,
  type Random,
  SeededRandom,
  systemClock,
} from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { noTelemetry, type Telemetry } from '@millrace/telemetry';
import type { JobGraph } from '../graph/job-graph.ts';
import type { InFlightFiles } from '../runtime/in-flight.ts';
import type { Scheduler } from '../runtime/scheduler.ts';
import type { OperatorSnapshot, Slot, SlotSettings, SlotStats } from '../runtime/slot.ts';
import { createSlot } from '../runtime/slot-runtime.ts';
import { MemoryNetwork } from './memory-network.ts';

/** What a restart begins from: the parts of all slots. Survives the cluster that made it. */
export interface ClusterCheckpoint {
  readonly checkpoint: number;
  readonly parallelism: number;
  readonly operators: readonly OperatorSnapshot[];
  /** Every input had ended before it. */
  readonly ended: boolean;
}

export interface LocalClusterOptions {
  /** Builds the graph; called once for each slot, as in a real attempt. */
  readonly graph: () => JobGraph;
  readonly store: StateStore;
  readonly parallelism?: number;
  readonly maxParallelism?: number;
  readonly job?: string;
  readonly generation?: number;
  readonly from?: ClusterCheckpoint | undefined;
  /** Checkpoints have higher numbers; default: that of `from`. */
  readonly lastCheckpoint?: number;
  readonly settings?: Partial<SlotSettings>;
  /** How long barriers wait before they overtake: absent = for ever, 0 = not at all. */
  readonly overtakeAfterMs?: number | undefined;
  readonly inFlightFiles?: InFlightFiles;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Randomly delays messages between slots, from `random`. */
  readonly slowNetwork?: boolean;
  readonly scheduler?: Scheduler;
  readonly telemetry?: Telemetry;
}

export const testSlotSettings: SlotSettings = {
  inFlightLimit: 100,
  workingSetBytes: 1 << 20,
  frameBytes: 32 * 1024,
  frameDelayMs: 2,
  channelWindowBytes: 256 * 1024,
};

/** One attempt of a job with all its slots in this process and in-memory channels between them; for tests. */
export class LocalCluster {
  readonly network: MemoryNetwork;
  readonly slots: readonly Slot[];
  readonly parallelism: number;
  /** Settles when every slot has: rejects with the first failure. */
  readonly done: Promise<void>;
  #lastCheckpoint: number;
  readonly #overtakeAfterMs: number | undefined;

  private constructor(network: MemoryNetwork, slots: readonly Slot[], options: LocalClusterOptions) {
    this.network = network;
    this.slots = slots;
    this.parallelism = slots.length;
    this.#lastCheckpoint = options.lastCheckpoint ?? options.from?.checkpoint ?? 0;
    this.#overtakeAfterMs = options.overtakeAfterMs;
    this.done = Promise.all(slots.map((slot) => slot.run())).then(() => network.close());
    // One slot's failure ends the attempt, as a task-runner would see to it.
    this.done.catch((error: unknown) => this.kill(MillraceError.from(error)));
  }

  /** Opens every slot and lets them run. */
  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const parallelism = options.parallelism ?? options.from?.parallelism ?? 1;
    const maxParallelism = options.maxParallelism ?? defaultMaxParallelism;
    const random = options.random ?? new SeededRandom(1);
    const { scheduler } = options;
    const network = new MemoryNetwork({ random: options.slowNetwork ? random : undefined, scheduler });
    const slots = Array.from({ length: parallelism }, (_, subtask) =>
      createSlot(
        options.graph(),
        {
          job: options.job ?? 'test',
          generation: options.generation ?? 1,
          subtask,
          parallelism,
          maxParallelism,
          keyGroups: keyGroupRange(subtask, parallelism, maxParallelism),
          settings: { ...testSlotSettings, ...options.settings },
          store: options.store,
          transport: network.transport(subtask),
          inFlightFiles: options.inFlightFiles,
          clock: options.clock ?? systemClock,
          random,
          telemetry: options.telemetry ?? noTelemetry,
          restore: options.from?.operators,
        },
        scheduler === undefined ? {} : { scheduler },
      ),
    );
    try {
      await Promise.all(slots.map((slot) => slot.open()));
    } catch (error) {
      network.close();
      await Promise.all(slots.map((slot) => slot.cancel(MillraceError.from(error))));
      throw error;
    }
    return new LocalCluster(network, slots, options);
  }

  /**
   * One round over all slots; not yet complete (`complete`). Rejects when the round or the attempt fails. With `stop`
   * nothing is read behind the barrier.
   */
  async checkpoint(overtakeAfterMs = this.#overtakeAfterMs, stop = false): Promise<ClusterCheckpoint> {
    const checkpoint = ++this.#lastCheckpoint;
    const parts = await Promise.all(this.slots.map((slot) => slot.checkpoint({ checkpoint, overtakeAfterMs, stop })));
    return {
      checkpoint,
      parallelism: this.parallelism,
      // As through the checkpoint object: only what JSON keeps comes back.
      operators: JSON.parse(JSON.stringify(parts.flatMap((part) => part.operators))) as OperatorSnapshot[],
      ended: parts.every((part) => part.ended),
    };
  }

  /** Tells every slot that the checkpoint is registered. */
  async complete(checkpoint: ClusterCheckpoint): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.complete(checkpoint.checkpoint, checkpoint.ended)));
  }

  /** The attempt ends with this checkpoint, taken with `stop`. */
  async stop(checkpoint: ClusterCheckpoint): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.complete(checkpoint.checkpoint, true)));
    await this.done;
  }

  abort(checkpoint: number): void {
    for (const slot of this.slots) slot.abort(checkpoint);
  }

  /** Runs a bounded job to its end: waits for the end of all inputs, then takes the last checkpoint. */
  async finish(): Promise<ClusterCheckpoint> {
    for (;;) {
      const checkpoint = await this.checkpoint();
      await this.complete(checkpoint);
      if (checkpoint.ended) {
        await this.done;
        return checkpoint;
      }
      await this.#untilEnded();
    }
  }

  /** Number of the newest checkpoint that was begun. */
  get lastCheckpoint(): number {
    return this.#lastCheckpoint;
  }

  stats(): readonly SlotStats[] {
    return this.slots.map((slot) => slot.stats());
  }

  /** Stops everything without a checkpoint, as a crash would. */
  async kill(reason: Error = new MillraceError('cancelled', 'killed')): Promise<void> {
    this.network.close();
    await Promise.all(this.slots.map((slot) => slot.cancel(reason)));
  }

  async #untilEnded(): Promise<void> {
    const failed = this.done.then(() => assert(false, 'a slot finished before the last checkpoint'));
    // When all have ended by now, nobody waits for it.
    failed.catch(() => undefined);
    while (!this.stats().every((slot) => slot.ended)) {
      await Promise.race([failed, new Promise((resolve) => setImmediate(resolve))]);
    }
  }
}
