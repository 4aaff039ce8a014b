import { type Clock, MillraceError } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, RoundResult } from '@millrace/proto/control';
import type { Telemetry } from '@millrace/telemetry';
import { findCheckpoint, registered, roundBegun, roundClosed } from '../record/transitions.ts';
import type { ControlStorage } from '../storage/control-storage.ts';
import type { Drained, RegisterInput, RoundStep, RunnerAddress } from './contract.ts';
import type { FailPoint } from './fail-points.ts';
import type { RunnerClient, RunnerClients } from './runner-clients.ts';
import type { StepScope } from './scope.ts';
import { collectAnswers } from './slot-answers.ts';

export interface RoundDeps {
  readonly storage: ControlStorage;
  readonly runners: RunnerClients;
  readonly failPoint: FailPoint;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const callTimeoutMs = 5_000;
/** One question whether a runner has drained; asked again until it has. */
const drainCallTimeoutMs = 600_000;
/** Old versions of a job's record go once in so many rounds. */
const roundsPerCollection = 16;

/**
 * The steps of a checkpoint round. Crash-order argument: the round's number is written before any barrier exists, so no
 * two rounds share one; everything a checkpoint names is durable before `drain` answers; its description and its holder
 * are written before the commit; the commit is one version of the job's record, refused to older generations and to closed
 * rounds; sinks are told only after it. A repeated step finds its own traces and does nothing twice.
 */
export class Round {
  readonly #deps: RoundDeps;

  constructor(deps: RoundDeps) {
    this.#deps = deps;
  }

  async barrier(step: RoundStep, scope: StepScope): Promise<void> {
    const { failPoint, storage } = this.#deps;
    await failPoint('barrier.before-record');
    await storage.updateRecord(step, (record) => roundBegun(record, step), scope.parent);
    await failPoint('barrier.before-inject');
    await this.#each(step, (client, request) => client.call.injectBarrier(request, this.#how(scope)));
    await failPoint('barrier.after-inject');
  }

  async drain(step: RoundStep, scope: StepScope): Promise<Drained> {
    const { failPoint, storage } = this.#deps;
    const answers = await this.#each(step, (client, request) =>
      client.call.awaitDrain(request, this.#how(scope, drainCallTimeoutMs)),
    );
    const collected = collectAnswers(
      answers.flatMap((answer) => answer.slotSnapshots),
      step,
    );
    const path = storage.checkpointPath(step.id, step.checkpoint, step.generation);
    const contents: CheckpointContents = {
      version: 1,
      id: step.id,
      checkpoint: step.checkpoint,
      generation: step.generation,
      parallelism: step.parallelism,
      maxParallelism: step.maxParallelism,
      codeHash: step.codeHash,
      slots: collected.slots,
    };
    await failPoint('drain.before-write');
    await storage.writeCheckpoint(path, contents, scope.parent);
    await failPoint('drain.after-write');
    return { path, bytesPut: collected.bytesPut, bytesLinked: collected.bytesLinked, last: collected.last };
  }

  async link(input: { readonly step: RoundStep; readonly drained: Drained }, scope: StepScope): Promise<void> {
    const { failPoint, storage } = this.#deps;
    const { step, drained } = input;
    const contents = await storage.readCheckpoint(drained.path, scope.parent);
    const missing = await storage.missingHolder(contents);
    if (missing !== undefined) {
      throw new MillraceError(
        'checkpoint-incomplete',
        `Checkpoint ${step.checkpoint} names ${missing}, which does not exist.`,
        {
          details: { id: step.id, checkpoint: step.checkpoint, missing },
        },
      );
    }
    await failPoint('link.before-hold');
    await storage.hold(contents, scope.parent);
    await failPoint('link.after-hold');
  }

  async register(input: RegisterInput, scope: StepScope): Promise<void> {
    const { failPoint, storage, clock } = this.#deps;
    const { step, drained } = input;
    const dropped = await this.#retire(step);
    const entry: CheckpointEntry = {
      checkpoint: step.checkpoint,
      generation: step.generation,
      path: drained.path,
      parallelism: step.parallelism,
      createdMs: clock.nowMs(),
      bytesPut: drained.bytesPut,
      bytesLinked: drained.bytesLinked,
      last: drained.last,
    };
    await failPoint('register.before-commit');
    const how = { id: step.id, retained: input.checkpointsRetained, dropped };
    await storage.updateRecord(step, (record) => registered(record, entry, how), scope.parent);
    await failPoint('register.after-commit');
    await this.#complete(step, drained.last, scope);
    await failPoint('register.after-complete');
  }

  async abort(step: RoundStep, scope: StepScope): Promise<RoundResult | null> {
    const { failPoint, storage, telemetry } = this.#deps;
    const record = await storage.updateRecord(step, (current) => roundClosed(current, step), scope.parent);
    await failPoint('abort.after-close');
    const entry = findCheckpoint(record, step);
    if (entry !== undefined) {
      await this.#complete(step, entry.last, scope);
      const { checkpoint, path, bytesPut, bytesLinked, last } = entry;
      return { checkpoint, path, bytesPut, bytesLinked, last, durationMs: 0 };
    }
    try {
      await this.#each(step, (client, request) => client.call.abortCheckpoint(request, this.#how(scope)));
      await storage.discardRound(step.id, step.checkpoint, step.generation);
    } catch (error) {
      // The round is closed durably: a runner that was not told forgets it at the next barrier, and the sweep takes objects.
      telemetry.log.warn('clean-up after an aborted round is incomplete', {
        id: step.id,
        checkpoint: step.checkpoint,
        error,
      });
    }
    return null;
  }

  /** Tells the sinks. A runner that is gone, or has ended after the last checkpoint, commits by what it restores from. */
  async #complete(step: RoundStep, last: boolean, scope: StepScope): Promise<void> {
    try {
      await this.#each(step, (client, request) =>
        client.call.completeCheckpoint({ ...request, last }, this.#how(scope)),
      );
    } catch (error) {
      const e = MillraceError.from(error);
      if (e.code === 'runner-lost' || e.code === 'attempt-unknown') return;
      throw e;
    }
  }

  /** Deletes what earlier rounds gave up; what fails is tried again by the next round. */
  async #retire(step: RoundStep): Promise<readonly CheckpointEntry[]> {
    const { storage, telemetry } = this.#deps;
    const { id } = step;
    try {
      if (step.checkpoint % roundsPerCollection === 0) await storage.collectRecord(id);
      const record = await storage.readRecord(id);
      if (record === undefined || record.dropping.length === 0) return [];
      return await storage.drop(id, record.dropping, record.checkpoints);
    } catch (error) {
      telemetry.log.warn('retention failed; the next round tries again', { id, error });
      return [];
    }
  }

  #each<T>(
    step: RoundStep,
    call: (client: RunnerClient, request: ReturnType<typeof requestOf>) => Promise<T>,
  ): Promise<readonly T[]> {
    return this.#deps.runners.each(step.runners, (client, runner) => call(client, requestOf(step, runner)));
  }

  #how(
    scope: StepScope,
    timeoutMs = callTimeoutMs,
  ): { timeoutMs: number; parent: string | undefined; signal: AbortSignal } {
    return { timeoutMs, parent: scope.parent, signal: scope.signal };
  }
}

function requestOf(step: RoundStep, runner: RunnerAddress) {
  return {
    target: { job: step.id, generation: BigInt(step.generation), runnerId: runner.runnerId },
    checkpoint: BigInt(step.checkpoint),
  };
}
