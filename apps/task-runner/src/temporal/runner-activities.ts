import type { Clock } from '@millrace/kernel';
import { MillraceError } from '@millrace/kernel';
import type { ClaimedSlot, ClaimSlotInput, DescribeJobInput, JobDescription, RunAttemptInput } from '@millrace/proto';
import type { Logger } from '@millrace/telemetry';
import { toFailure } from '@millrace/temporal';
import { CompleteAsyncError, Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import type { AttemptHost } from './attempt-host.ts';
import { AttemptKeeper } from './attempt-keeper.ts';
import { TemporalReports } from './attempt-reports.ts';
import type { SlotPool, SlotUse } from './slot-pool.ts';

export interface RunnerActivityDeps {
  readonly runnerId: string;
  /** host:port of this runner's gRPC server, as others reach it. */
  readonly grpcAddress: string;
  readonly pool: SlotPool;
  readonly host: AttemptHost;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly heartbeatMs: number;
  readonly unreachableMaxMs: number;
}

/** The activities of a runner, and the attempts that they started. */
export class RunnerActivities {
  readonly #deps: RunnerActivityDeps;
  /** Attempts that run here, each with the promise of its end. */
  readonly #running = new Map<AttemptKeeper, Promise<void>>();

  constructor(deps: RunnerActivityDeps) {
    this.#deps = deps;
  }

  readonly claimSlot = async (input: ClaimSlotInput): Promise<ClaimedSlot> => {
    const { pool, host, runnerId, grpcAddress, log } = this.#deps;
    const { lease, leaseMs } = pool.lease();
    host.prepareSlots(pool.leased);
    log.debug('slot claimed', { job: input.id, generation: input.generation, subtask: input.subtask, lease });
    return { runnerId, address: grpcAddress, lease, leaseMs, keptMs: pool.keptMs };
  };

  readonly describeJob = async (input: DescribeJobInput): Promise<JobDescription> => {
    try {
      return await this.#deps.host.describe(input.job, input.options);
    } catch (error) {
      throw toFailure(error);
    }
  };

  /**
   * Starts this runner's slots and leaves: from then on the attempt reports by itself, through an ordinary client and the
   * activity's token, so that it outlives outages of Temporal and restarts of the worker that took the task.
   */
  readonly runAttempt = async (input: RunAttemptInput): Promise<void> => {
    const { pool, host, runnerId, client, clock, log, heartbeatMs, unreachableMaxMs } = this.#deps;
    const { plan } = input;
    const leases = plan.slots.filter((slot) => slot.runnerId === runnerId).map((slot) => slot.lease);
    let use: SlotUse;
    try {
      if (leases.length === 0) throw new MillraceError('bad-argument', `The plan has no slot on runner ${runnerId}.`);
      use = pool.use(plan.id, leases);
    } catch (error) {
      throw toFailure(error);
    }
    log.info('attempt starts', { job: plan.id, generation: plan.generation, slots: leases.length });
    const handle = host.start(plan, runnerId);
    const reports = new TemporalReports(client, Context.current().info.taskToken, clock);
    const keeper = new AttemptKeeper({ plan, handle, reports, clock, log, heartbeatMs, unreachableMaxMs });
    const ended = keeper.run().then((ending) => {
      this.#running.delete(keeper);
      // After the end of its input a job needs no slot; else the next attempt may be on its way here.
      pool.release(use, ending !== 'finished' || handle.stopped);
    });
    this.#running.set(keeper, ended);
    throw new CompleteAsyncError();
  };

  /** Ends every attempt here; resolves when their ends are reported. */
  async stop(reason: MillraceError): Promise<void> {
    await Promise.all([...this.#running].map(([keeper, ended]) => Promise.all([keeper.stop(reason), ended])));
  }
}
