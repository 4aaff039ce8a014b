import type { Dfs } from '@millrace/dfs';
import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { AttemptPlan, AttemptProgress, CallContext, CompactionPlace } from '@millrace/proto';
import type { SlotSettings, SlotSnapshot, SlotStats } from '@millrace/streams';
import type { MetricSource, Telemetry } from '@millrace/telemetry';
import type { CompactionBroker } from '../compaction/compaction-broker.ts';
import type { DiskCachePlace } from '../disk-cache/compose.ts';
import { ExchangeBridge, exchangeLayout } from '../exchange/index.ts';
import type { JobRegistry } from '../jobs/job-registry.ts';
import type { AttemptCalls, BarrierCall, HostedAttempt } from '../rpc/index.ts';
import type { SlotBudget } from '../slots/slot-budget.ts';
import { SlotHost } from '../slots/slot-host.ts';
import type { StateBackend, StateServiceAccess } from '../slots/slot-protocol.ts';
import type { SlotWorkers } from '../slots/slot-workers.ts';
import type { AttemptHandle } from '../temporal/attempt-host.ts';
import { readRestore } from './checkpoint-object.ts';

/** What every attempt of a runner is made with. */
export interface AttemptDeps {
  readonly jobs: JobRegistry;
  readonly dfs: Dfs;
  /** The URI that `dfs` was opened with; the slots open their own. */
  readonly dfsUri: string;
  readonly backend: StateBackend;
  /** For the backend `remote`. */
  readonly stateService?: StateServiceAccess | undefined;
  /** Where the tables of jobs are compacted that do not say it, and the way to compactors; without it: in the slots. */
  readonly compaction?: { readonly place: CompactionPlace; readonly broker: CompactionBroker };
  /** The runner's cache of files on the local disk. */
  readonly diskCache?: DiskCachePlace | undefined;
  readonly budget: SlotBudget;
  readonly workers: SlotWorkers;
  readonly slot: SlotSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Makes the attempt reachable for the control plane and its peers; throws `attempt-fenced` for an older one. */
  register(attempt: HostedAttempt): () => void;
}

/** A failure that another slot's failure brings about. */
const consequences: readonly string[] = ['channel-broken', 'exchange-broken', 'cancelled'];

/** Rounds whose answers are kept for late and repeated questions. */
const roundsKept = 2;

/**
 * One runner's part of an attempt: checks the code, reads the checkpoint, starts the slots' threads, joins them, and
 * ends all of them with the first that fails.
 */
export class Attempt implements AttemptHandle, AttemptCalls {
  readonly plan: AttemptPlan;
  readonly done: Promise<void>;
  readonly inputsEnded: Promise<void>;
  readonly #deps: AttemptDeps;
  readonly #runnerId: string;
  readonly #cancelled = new AbortController();
  readonly #started = Promise.withResolvers<readonly SlotHost[]>();
  readonly #inputsEnded = Promise.withResolvers<void>();
  /** Answers of the slots by round. */
  readonly #rounds = new Map<number, Promise<readonly SlotSnapshot[]>>();
  #slots: readonly SlotHost[] = [];
  /** The round with which the attempt is to stop; a later one says that it has failed. */
  #stopRound: number | undefined;

  /** Starts at once, after `before` (the end of an older attempt of the job here). */
  constructor(deps: AttemptDeps, plan: AttemptPlan, place: { runnerId: string; before: Promise<void> }) {
    this.#deps = deps;
    this.plan = plan;
    this.#runnerId = place.runnerId;
    this.inputsEnded = this.#inputsEnded.promise;
    this.#started.promise.catch(() => undefined);
    this.done = this.#life(place.before);
    this.done.catch(() => undefined);
  }

  /** What the slots' metrics were a moment ago. */
  metrics(): readonly MetricSource[] {
    return this.#slots.map((slot) => ({ families: slot.metrics, labels: { slot: slot.subtask } }));
  }

  progress(): AttemptProgress {
    const stats = this.#stats();
    return {
      recordsIn: stats.reduce((sum, slot) => sum + slot.recordsIn, 0),
      recordsOut: stats.reduce((sum, slot) => sum + slot.recordsOut, 0),
    };
  }

  async cancel(reason: Error): Promise<void> {
    if (!this.#cancelled.signal.aborted) this.#cancelled.abort(MillraceError.from(reason, 'cancelled'));
    await this.done.catch(() => undefined);
  }

  get stopped(): boolean {
    return this.#stopRound !== undefined;
  }

  async injectBarrier({ checkpoint, stop }: BarrierCall, context: CallContext): Promise<void> {
    const slots = await this.#started.promise;
    if (this.#rounds.has(checkpoint)) return;
    this.#stopRound = stop ? checkpoint : undefined;
    // Another attempt probably follows at once.
    if (stop) this.#deps.workers.warm(slots.length);
    // The last barrier overtakes nothing: what it would overtake this attempt would still process.
    const overtakeAfterMs = stop ? undefined : this.plan.overtakeAfterMs;
    const barrier = { checkpoint, parent: context.parent, overtakeAfterMs, stop };
    const answers = Promise.all(slots.map((slot) => slot.checkpoint(barrier)));
    answers.catch(() => undefined);
    this.#rounds.set(checkpoint, answers);
    for (const old of this.#rounds.keys()) if (this.#rounds.size > roundsKept) this.#rounds.delete(old);
  }

  awaitDrain(checkpoint: number, _context: CallContext): Promise<readonly SlotSnapshot[]> {
    const answers = this.#rounds.get(checkpoint);
    if (answers !== undefined) return answers;
    const text = `runner ${this.#runnerId} got no barrier of checkpoint ${checkpoint}, or has forgotten it`;
    return Promise.reject(new MillraceError('checkpoint-aborted', text, { details: { checkpoint } }));
  }

  async completeCheckpoint(checkpoint: number, last: boolean, _context: CallContext): Promise<void> {
    const slots = await this.#started.promise;
    await Promise.all(slots.map((slot) => slot.complete(checkpoint, last)));
  }

  async endInputs(_context: CallContext): Promise<void> {
    for (const slot of await this.#started.promise) slot.endInputs();
  }

  async abortCheckpoint(checkpoint: number, _context: CallContext): Promise<void> {
    for (const slot of this.#slots) slot.abort(checkpoint);
  }

  async status(_context: CallContext): Promise<readonly SlotStats[]> {
    return this.#stats();
  }

  async #life(before: Promise<void>): Promise<void> {
    const { signal } = this.#cancelled;
    try {
      await before;
      signal.throwIfAborted();
      const { plan } = this;
      const { module } = await this.#deps.jobs.require(plan.job, plan.codeHash);
      const restore = await readRestore(this.#deps.dfs, plan);
      signal.throwIfAborted();
      await this.#run(module, restore);
    } catch (error) {
      const failure = MillraceError.from(error);
      this.#started.reject(failure);
      throw failure;
    }
  }

  async #run(module: string, restore: Awaited<ReturnType<typeof readRestore>>): Promise<void> {
    const { clock, random, telemetry, slot: settings } = this.#deps;
    const { id, generation } = this.plan;
    const exchange = new ExchangeBridge({
      job: id,
      generation,
      runnerId: this.#runnerId,
      layout: exchangeLayout(this.plan, this.#runnerId),
      channelWindowBytes: settings.channelWindowBytes,
      clock,
      random,
      telemetry,
      onBroken: (error) => this.#cancelled.abort(error),
    });
    let failure: MillraceError | undefined;
    let unregister: (() => void) | undefined;
    try {
      unregister = this.#deps.register({ job: id, generation, calls: this, exchange });
      this.#slots = this.#startSlots(exchange, module, restore);
      void exchange.open();
      failure = await this.#untilEnd(this.#slots);
    } catch (error) {
      failure = MillraceError.from(error);
    } finally {
      await exchange.close(failure);
      unregister?.();
    }
    if (failure !== undefined) throw failure;
  }

  #startSlots(
    exchange: ExchangeBridge,
    module: string,
    restore: Awaited<ReturnType<typeof readRestore>>,
  ): readonly SlotHost[] {
    const { clock, dfsUri: dfs, backend, stateService, budget, slot, diskCache } = this.#deps;
    const { compaction, workers } = this.#deps;
    const isRemote = backend === 'lsm' && (this.plan.compaction ?? compaction?.place) === 'remote';
    const { id, generation, lineage, parallelism, maxParallelism, options } = this.plan;
    return exchangeLayout(this.plan, this.#runnerId).slots.map((subtask) => {
      const ports = [...exchange.ports(subtask)];
      const same = { module, options, id, generation, lineage, parallelism, maxParallelism, restore, stateService };
      const runnerId = this.#runnerId;
      const { allowDroppedState } = this.plan;
      const compactions = isRemote ? compaction?.broker.connect() : undefined;
      const own = { allowDroppedState, subtask, dfs, backend, budget, slot, runnerId, ports, compactions, diskCache };
      return new SlotHost(workers.take(), { ...same, ...own }, clock);
    });
  }

  /** The failure that ended the slots, or nothing when all finished. Afterwards no thread runs. */
  async #untilEnd(slots: readonly SlotHost[]): Promise<MillraceError | undefined> {
    const { signal } = this.#cancelled;
    const aborted = new Promise<never>((_, reject) => {
      const stop = (): void => reject(MillraceError.from(signal.reason));
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
    });
    aborted.catch(() => undefined);
    try {
      await Promise.race([aborted, Promise.all(slots.map((slot) => slot.opened))]);
      this.#started.resolve(slots);
      void Promise.all(slots.map((slot) => slot.inputsEnded)).then(() => this.#inputsEnded.resolve());
      await Promise.race([aborted, Promise.all(slots.map((slot) => slot.done))]);
      return undefined;
    } catch (error) {
      const first = MillraceError.from(error);
      await Promise.all(slots.map((slot) => slot.cancel(first)));
      return await rootCause(first, slots);
    }
  }

  #stats(): readonly SlotStats[] {
    return this.#slots.flatMap((slot) => slot.stats ?? []);
  }
}

/** Of all failures the one that is no consequence of another. */
async function rootCause(first: MillraceError, slots: readonly SlotHost[]): Promise<MillraceError> {
  if (!consequences.includes(first.code)) return first;
  const ends = await Promise.allSettled(slots.map((slot) => slot.done));
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [MillraceError.from(end.reason)] : []));
  return failures.find((failure) => !consequences.includes(failure.code)) ?? first;
}
