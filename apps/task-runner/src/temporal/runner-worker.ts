import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import { jobCodeQueue, runnerQueue, slotQueue } from '@millrace/proto';
import type { Telemetry } from '@millrace/telemetry';
import { KeptWorker } from '@millrace/temporal';
import { Client, Connection } from '@temporalio/client';
import type { AttemptHost } from './attempt-host.ts';
import { RunnerActivities } from './runner-activities.ts';
import { SlotPool } from './slot-pool.ts';
import { claimTuner } from './slot-supplier.ts';

export interface RunnerWorkerOptions {
  /** host:port of the Temporal frontend (MILLRACE_TEMPORAL_ADDRESS). */
  readonly address: string;
  readonly namespace: string;
  /** Unique for each process. */
  readonly runnerId: string;
  /** host:port of this runner's gRPC server, as others reach it. */
  readonly grpcAddress: string;
  readonly slots: number;
  readonly host: AttemptHost;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Default 10 s. */
  readonly leaseMs?: number;
  /** How long a slot is kept for the next attempt of a job. Default 5 s. */
  readonly keptMs?: number;
  /** Default 1 s. */
  readonly heartbeatMs?: number;
  /** How long an attempt goes on while Temporal does not answer. Default 10 min. */
  readonly unreachableMaxMs?: number;
}

/**
 * A runner's side of Temporal: offers its free slots, answers questions about job code, and hosts parts of attempts. It
 * keeps trying while Temporal is away, at the start too.
 */
export class RunnerWorker {
  readonly #options: RunnerWorkerOptions;
  readonly #pool: SlotPool;
  readonly #connection: Connection;
  readonly #activities: RunnerActivities;
  readonly #claims: KeptWorker;
  readonly #others: readonly KeptWorker[];

  constructor(options: RunnerWorkerOptions) {
    const { address, namespace, runnerId, slots, clock, random, telemetry } = options;
    this.#options = options;
    const { leaseMs = 10_000, keptMs = 5_000 } = options;
    this.#pool = new SlotPool({ slots, leaseMs, keptMs, clock, random });
    this.#connection = Connection.lazy({ address });
    this.#activities = new RunnerActivities({
      runnerId,
      grpcAddress: options.grpcAddress,
      pool: this.#pool,
      host: options.host,
      client: new Client({ connection: this.#connection, namespace }),
      clock,
      log: telemetry.log,
      heartbeatMs: options.heartbeatMs ?? 1_000,
      unreachableMaxMs: options.unreachableMaxMs ?? 600_000,
    });
    const { claimSlot, describeJob, runAttempt } = this.#activities;
    const common = { address, namespace, clock, random, log: telemetry.log, identity: runnerId };
    this.#claims = new KeptWorker({
      ...common,
      worker: { taskQueue: slotQueue, activities: { claimSlot }, tuner: claimTuner(this.#pool) },
    });
    this.#others = [
      new KeptWorker({
        ...common,
        worker: { taskQueue: jobCodeQueue, activities: { describeJob }, maxConcurrentActivityTaskExecutions: 4 },
      }),
      new KeptWorker({
        ...common,
        worker: {
          taskQueue: runnerQueue(runnerId),
          activities: { runAttempt },
          maxConcurrentActivityTaskExecutions: 16,
        },
      }),
    ];
  }

  /** Begins to offer slots; returns at once and keeps trying while Temporal is away. */
  start(): void {
    for (const worker of [this.#claims, ...this.#others]) worker.start();
  }

  /** Resolves when every queue is polled for the first time. */
  async ready(): Promise<void> {
    await Promise.all([this.#claims, ...this.#others].map((worker) => worker.ready()));
  }

  /** Slots that an attempt uses. */
  get slotsInUse(): number {
    return this.#pool.inUse;
  }

  /** Offers no more slots, ends the attempts here so that they restart elsewhere at once, and leaves. Idempotent. */
  async stop(): Promise<void> {
    await this.#claims.stop();
    const { runnerId } = this.#options;
    await this.#activities.stop(
      new MillraceError('runner-stopped', `Runner ${runnerId} was asked to shut down.`, { details: { runnerId } }),
    );
    await Promise.all(this.#others.map((worker) => worker.stop()));
    this.#pool.close();
    await this.#connection.close();
  }
}
