import { type Clock, MillraceError } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, RoundResult } from '@millrace/proto/control';
import type { Telemetry } from '@millrace/telemetry';
import { findCheckpoint, registered, roundBegun, roundClosed } from '../record/transitions.ts';
import type { ControlStorage } from '../storage/control-storage.ts';
import type { AttemptAddress, Drained, RegisterInput, RoundStep, RunnerAddress } from './contract.ts';
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

/** Answers of a runner that has nothing of this attempt: see `#complete`. */
const goneCodes: ReadonlySet<string> = new Set(['attempt-unknown', 'attempt-fenced', 'runner-mismatch']);

const callTimeoutMs = 5_000;
/** One question whether a runner has drained; asked again until it has. */
const drainCallTimeoutMs = 600_000;

/**
 * The steps of a checkpoint round. Crash-order argument: the round's number is written before any barrier exists, so no
 * two rounds share one; everything a checkpoint names is durable before `drain` answers; its description and its holder
 * are written before the commit; the commit is one version of the job's record, refused to older generations and to closed
 * rounds; sinks are told only after it. A repeated step finds its own traces and does nothing twice. Nothing here waits
 * for a deletion: what a commit gives up is listed in the record, and `RetentionQueue` takes it from there.
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
    const stop = step.stop === true;
    await this.#each(step, (client, request) => client.call.injectBarrier({ ...request, stop }, this.#how(scope)));
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

  /** The sources of the attempt read nothing more; a last round follows by itself. */
  async endInputs({ id, generation, runners }: AttemptAddress, scope: StepScope): Promise<void> {
    await this.#deps.runners.each(runners, (client, { runnerId }) => {
      const target = { job: id, generation: BigInt(generation), runnerId };
      return client.call.endInputs({ target }, this.#how(scope));
    });
  }

  async register(input: RegisterInput, scope: StepScope): Promise<void> {
    const { failPoint, storage, clock } = this.#deps;
    const { step, drained } = input;
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
    const { checkpointsRetained: retained, savepoints = [] } = input;
    const how = { id: step.id, retained, savepoints };
    await storage.updateRecord(step, (record) => registered(record, entry, how), scope.parent);
    await failPoint('register.after-commit');
    await this.#complete(step, endsWith(step, drained), scope);
    await failPoint('register.after-complete');
  }

  async abort(step: RoundStep, scope: StepScope): Promise<RoundResult | null> {
    const { failPoint, storage, telemetry } = this.#deps;
    const record = await storage.updateRecord(step, (current) => roundClosed(current, step), scope.parent);
    await failPoint('abort.after-close');
    const entry = findCheckpoint(record, step);
    if (entry !== undefined) {
      await this.#complete(step, endsWith(step, entry), scope);
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

  /**
   * Tells the sinks; rejects, to be repeated, unless every runner has answered. The answer that a runner has nothing of
   * the attempt counts, for that runner only. It took part in this round, so it has hosted the attempt, and either its
   * part ended well (only an earlier `complete` of the last checkpoint does that: this is a repeated call), or its part
   * has failed. Then its `runAttempt` fails the attempt, and the next one restores this checkpoint, which is committed,
   * and publishes what belongs to it. No runner can answer so, run on, and wait for this call.
   *
   * A runner that was told is not asked again by later tries: after the last checkpoint its process may be gone.
   */
  async #complete(step: RoundStep, last: boolean, scope: StepScope): Promise<void> {
    await this.#each(step, async (client, request) => {
      const { runnerId } = request.target;
      if (scope.done?.has(runnerId) === true) return;
      try {
        await client.call.completeCheckpoint({ ...request, last }, this.#how(scope));
      } catch (error) {
        if (!goneCodes.has(MillraceError.from(error).code)) throw error;
      }
      scope.done?.add(runnerId);
    });
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

/** Whether slots end with this checkpoint. */
function endsWith(step: RoundStep, checkpoint: { readonly last: boolean }): boolean {
  return checkpoint.last || step.stop === true;
}

function requestOf(step: RoundStep, runner: RunnerAddress) {
  return {
    target: { job: step.id, generation: BigInt(step.generation), runnerId: runner.runnerId },
    checkpoint: BigInt(step.checkpoint),
  };
}
