/**
 * A job under test: its operators in real slots of this process, between sources that the test feeds and sinks that it
 * reads, with a clock that stands still until the test moves it. No server, no files, no waiting.
 */
import { assert, MillraceError, SeededRandom, systemClock } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { MemoryStateStore, type StateStore } from '@millrace/state';
import { type Duration, durationMs } from '../api/duration.ts';
import type { Job, OptionsJson } from '../api/job.ts';
import type { SideTag } from '../api/side-tag.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { failing, type PlannedFailure } from './failing-operator.ts';
import { type ClusterCheckpoint, LocalCluster } from './local-cluster.ts';
import { SlowStore } from './slow-store.ts';
import { betweenEnds, endsOf, type GraphEnds } from './test-graph.ts';
import { type Emitted, TestOutput } from './test-outputs.ts';
import { TestInput, type TestWatermarks, testSource } from './test-source.ts';
import { turnClock } from './turn-clock.ts';

/** What may differ from one attempt to the next. */
export interface AttemptOptions {
  /** Slots. Default 1; of a restart: as before. */
  readonly parallelism?: number;
  /** Records in flight in each operator; 1 is one record at a time. Default 100. An operator's own `execution` counts more. */
  readonly inFlightLimit?: number;
  /** State answers after up to so many turns of the event loop, as one that is far away. Default 0: at once. */
  readonly stateLatencyTurns?: number;
  /** Memory for state at hand in each slot. Small: state is written and read again all the time. Default 1 MiB. */
  readonly workingSetBytes?: number;
}

export interface TestJobOptions extends AttemptOptions {
  /** The job's options, as its user would give them. */
  readonly options?: OptionsJson;
  /** Uids of sources and sinks that stay as they are; all others are the test's. */
  readonly keep?: readonly string[];
  /** Default `job`: the job's own watermarks, and those that are pushed. `pushed`: those alone. */
  readonly watermarks?: TestWatermarks;
  /** Splits of each source of the test, to which records go in turn. Default 1: all records come in order. */
  readonly splits?: number;
  /** Fixed for the life of the job's state. Default 128. */
  readonly maxParallelism?: number;
  /** Where the machine's clock begins. Default 0. */
  readonly nowMs?: number;
  /** Decides what `stateLatencyTurns` leaves to chance. Default 1. */
  readonly seed?: number;
  /** How long, in real time, work may take while the job's clock stands still. Default 10 s. */
  readonly settleMs?: number;
  /** Where state lives; default: in memory. */
  readonly store?: StateStore;
}

/** A checkpoint of a job under test, with what its sinks had got: can be restored any number of times. */
export interface TestJobCheckpoint {
  readonly cluster: ClusterCheckpoint;
  readonly outputs: ReadonlyMap<string, readonly Emitted<unknown>[]>;
}

/** What a test pushes into a source. */
export interface SourceHandle<T> {
  /** Records, in this order. Their times are those that the job's `timestamp` gives them. */
  push(...records: readonly T[]): SourceHandle<T>;
  /** No record earlier than this will follow. */
  watermark(timeMs: number): SourceHandle<T>;
  /** Nothing will follow. */
  end(): SourceHandle<T>;
}

/** What a sink or a side output has got, in the order of arrival. */
export interface OutputHandle<T> {
  readonly records: readonly T[];
  /** The same, with the time of each record and the subtask that got it. */
  readonly emitted: readonly Emitted<T>[];
}

/** Turns without any progress after which work counts as waiting for the clock. */
const quietTurns = 50;

/** Starts a job with its sources and sinks in the hands of the test. `await using` closes it. */
export async function testJob(job: Job, options: TestJobOptions = {}): Promise<TestJob> {
  const test = new TestJob(job, options);
  await test.restart();
  return test;
}

/** See {@link testJob}. */
export class TestJob implements AsyncDisposable {
  /** The machine's clock, as the job sees it. {@link advance} moves it. */
  readonly clock: ManualClock;
  readonly #graph: () => JobGraph;
  readonly #ends: GraphEnds;
  readonly #options: TestJobOptions;
  readonly #store: StateStore;
  readonly #random: SeededRandom;
  readonly #settleMs: number;
  readonly #inputs = new Map<string, TestInput>();
  readonly #outputs = new Map<string, TestOutput>();
  #failures: PlannedFailure[] = [];
  /** The round under way is none that the test has asked for: it only shows that nothing is left to do. */
  #looking = false;
  #attempt: AttemptOptions;
  #generation = 0;
  #lastCheckpoint = 0;
  #registered: TestJobCheckpoint | undefined;
  #cluster: LocalCluster | undefined;

  constructor(job: Job, options: TestJobOptions) {
    this.#options = options;
    this.#attempt = options;
    this.#settleMs = options.settleMs ?? 10_000;
    this.clock = new ManualClock(options.nowMs ?? 0);
    this.#random = new SeededRandom(options.seed ?? 1);
    this.#store = options.store ?? new MemoryStateStore(this.clock);
    this.#ends = endsOf(buildGraph(job, options.options));
    const { keep = [], splits = 1 } = options;
    for (const uid of this.#ends.sources) if (!keep.includes(uid)) this.#inputs.set(uid, new TestInput(splits));
    for (const uid of this.#ends.sinks) if (!keep.includes(uid)) this.#outputs.set(uid, new TestOutput());
    for (const { uid, side } of this.#ends.sides) this.#outputs.set(sideName(uid, side), new TestOutput());
    const inner = (uid: string, operator: Parameters<typeof failing>[1]): ReturnType<typeof failing> =>
      failing(uid, operator, () =>
        this.#looking ? this.#failures.filter((one) => one.recordsLeft !== undefined) : this.#failures,
      );
    this.#graph = () =>
      betweenEnds(
        buildGraph(job, options.options),
        {
          source: (uid, host) => testSource(this.#input(uid), host, options.watermarks ?? 'job'),
          sink: (uid) => inner(uid, this.#output(uid).operator()),
          side: (uid, side) => this.#output(sideName(uid, side)).operator(),
          inner,
        },
        keep,
      );
  }

  /** The source with this uid. `T` is the type of its records. */
  source<T>(uid: string): SourceHandle<T> {
    const input = this.#inputs.get(uid);
    if (input === undefined) throw noSuch('source', uid, [...this.#inputs.keys()]);
    const handle: SourceHandle<T> = {
      push: (...records) => {
        for (const record of records) input.push(record);
        return handle;
      },
      watermark: (timeMs) => {
        input.watermark(timeMs);
        return handle;
      },
      end: () => {
        input.end();
        return handle;
      },
    };
    return handle;
  }

  /** What the sink with this uid has got. */
  sink<T>(uid: string): OutputHandle<T> {
    const output = this.#outputs.get(uid);
    if (output === undefined || uid.includes('/')) throw noSuch('sink', uid, this.#ends.sinks);
    return handleOf(output);
  }

  /** What the operator with this uid has sent to a side output, whatever the job does with it. */
  side<T>(uid: string, tag: SideTag<T>): OutputHandle<T> {
    const output = this.#outputs.get(sideName(uid, tag.name));
    const sides = this.#ends.sides.map((one) => sideName(one.uid, one.side));
    if (output === undefined) throw noSuch('side output', sideName(uid, tag.name), sides);
    return handleOf(output);
  }

  /** Waits until everything that was pushed has had its whole effect, for which time does not pass. Rejects when the job fails. */
  async settle(): Promise<void> {
    await this.#look(this.clock.nowMs());
  }

  /** Lets so much time pass by the machine's clock; what falls due on the way has its whole effect at its own time. */
  async advance(duration: Duration): Promise<void> {
    const untilMs = this.clock.nowMs() + durationMs(duration, 'the time to advance by');
    for (;;) {
      await this.#look(untilMs);
      const dueMs = this.clock.nextDueMs ?? Number.POSITIVE_INFINITY;
      const nowMs = this.clock.nowMs();
      if (nowMs >= untilMs) return;
      this.clock.advance(Math.min(dueMs, untilMs) - nowMs);
    }
  }

  /**
   * A registered checkpoint of the job: sinks that the test has kept publish. By default one of all that was pushed;
   * `unaligned`: right away, together with the records that are under way.
   */
  async checkpoint(mode: 'aligned' | 'unaligned' = 'aligned'): Promise<TestJobCheckpoint> {
    const cluster = this.#running;
    const round = mode === 'aligned' ? this.#settled(cluster) : cluster.checkpoint(0);
    await this.#drive(round, this.clock.nowMs());
    return this.#register(cluster, await round);
  }

  /** From now on, operator `uid` throws `error` at its n-th record, or when it takes its part of a checkpoint. */
  failAt(
    uid: string,
    at: { readonly record: number } | 'checkpoint',
    error = new Error(`${uid} was told to fail`),
  ): void {
    if (!this.#ends.operators.includes(uid)) throw noSuch('operator', uid, this.#ends.operators);
    if (this.#inputs.has(uid))
      throw new MillraceError('bad-argument', `${uid} is a source of the test; let another operator fail`);
    this.#failures.push({ operator: uid, recordsLeft: at === 'checkpoint' ? undefined : at.record, error });
  }

  /**
   * Crashes what runs and starts it again: from the newest checkpoint, or from `from`. What sinks had got after it is
   * taken back, and read and computed once more.
   */
  async restart(options: AttemptOptions & { readonly from?: TestJobCheckpoint } = {}): Promise<void> {
    await this.#stop();
    const { from = this.#registered, ...attempt } = options;
    this.#failures = [];
    this.#attempt = { ...this.#attempt, ...attempt };
    this.#registered = from;
    for (const [name, output] of this.#outputs) output.restore(from?.outputs.get(name) ?? []);
    const { parallelism = 1, inFlightLimit = 100, stateLatencyTurns = 0, workingSetBytes = 1 << 20 } = this.#attempt;
    const store =
      stateLatencyTurns === 0 ? this.#store : new SlowStore(this.#store, turnClock, this.#random, stateLatencyTurns);
    const starting = LocalCluster.start({
      graph: this.#graph,
      store,
      parallelism,
      ...(this.#options.maxParallelism === undefined ? {} : { maxParallelism: this.#options.maxParallelism }),
      generation: ++this.#generation,
      from: from?.cluster,
      lastCheckpoint: this.#lastCheckpoint,
      settings: { inFlightLimit, workingSetBytes, frameDelayMs: 0 },
      clock: this.clock,
      random: this.#random,
    });
    await this.#drive(starting, this.clock.nowMs());
    this.#cluster = await starting;
  }

  /** Ends every source and lets the job end: what is left is emitted, and a last checkpoint registered. Time passes as needed. */
  async finish(): Promise<void> {
    const cluster = this.#running;
    for (const input of this.#inputs.values()) input.end();
    const finished = cluster.finish();
    await this.#drive(finished, Number.POSITIVE_INFINITY);
    this.#cluster = undefined;
    this.#keep(await finished);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    if (this.#options.store === undefined) await this.#store.close();
  }

  get #running(): LocalCluster {
    if (this.#cluster !== undefined) return this.#cluster;
    throw new MillraceError('bad-argument', 'the job has ended; restart it to go on');
  }

  #input(uid: string): TestInput {
    const input = this.#inputs.get(uid);
    assert(input !== undefined, `no input ${uid}`);
    return input;
  }

  #output(name: string): TestOutput {
    const output = this.#outputs.get(name);
    assert(output !== undefined, `no output ${name}`);
    return output;
  }

  async #stop(): Promise<void> {
    const cluster = this.#cluster;
    this.#cluster = undefined;
    if (cluster === undefined) return;
    await cluster.kill();
    await cluster.done.catch(() => undefined);
  }

  async #look(untilMs: number): Promise<void> {
    const cluster = this.#running;
    this.#looking = true;
    try {
      const round = this.#settled(cluster);
      await this.#drive(round, untilMs);
      cluster.abort((await round).checkpoint);
    } finally {
      this.#looking = false;
    }
  }

  /** A round after everything that was pushed: nothing before its barrier is under way any more. */
  async #settled(cluster: LocalCluster): Promise<ClusterCheckpoint> {
    let failed = false;
    cluster.done.catch(() => (failed = true));
    const isRead = (): boolean => [...this.#inputs.values()].every((input) => input.isRead);
    while (!isRead() && !failed) await turn();
    return cluster.checkpoint();
  }

  async #register(cluster: LocalCluster, checkpoint: ClusterCheckpoint): Promise<TestJobCheckpoint> {
    // Of a job whose inputs have ended the checkpoint is the last one, which `finish` registers.
    await cluster.complete({ ...checkpoint, ended: false });
    return this.#keep(checkpoint);
  }

  #keep(cluster: ClusterCheckpoint): TestJobCheckpoint {
    const outputs = new Map([...this.#outputs].map(([name, output]) => [name, output.before(cluster.checkpoint)]));
    this.#registered = { cluster, outputs };
    return this.#registered;
  }

  /**
   * Turns the event loop until `work` has settled. When it waits for the clock, this is moved, up to `untilMs`; when that
   * is not enough, the wait is given up.
   */
  async #drive(work: Promise<unknown>, untilMs: number): Promise<void> {
    let settled = false;
    const settle = (): void => void (settled = true);
    work.then(settle, settle);
    const beganMs = systemClock.monotonicMs();
    let [progress, quiet] = ['', 0];
    while (!settled) {
      this.clock.advance(0);
      await turn();
      const now = this.#progress();
      quiet = now === progress ? quiet + 1 : 0;
      progress = now;
      const nextMs = this.clock.nextDueMs ?? Number.POSITIVE_INFINITY;
      if (quiet > quietTurns && nextMs <= untilMs && nextMs < Number.POSITIVE_INFINITY) {
        quiet = 0;
        this.clock.advance(nextMs - this.clock.nowMs());
      }
      if (systemClock.monotonicMs() - beganMs > this.#settleMs) throw this.#stuck();
    }
    this.#lastCheckpoint = this.#cluster?.lastCheckpoint ?? this.#lastCheckpoint;
    await work;
  }

  #progress(): string {
    const slots = this.#cluster?.stats() ?? [];
    return slots.map((slot) => `${slot.recordsIn} ${slot.recordsOut} ${slot.inFlight} ${slot.buffered}`).join();
  }

  #stuck(): Error {
    const slots = this.#cluster?.stats() ?? [];
    const busy = slots.flatMap((slot) => slot.operators ?? []).filter((one) => one.inFlight > 0);
    const where = [...new Set(busy.map(({ uid }) => uid))].join(', ');
    return new Error(
      `after ${this.#settleMs} ms records are still under way${where === '' ? '' : ` in ${where}`}; if they wait for time to pass, call advance`,
    );
  }
}

function handleOf<T>(output: TestOutput): OutputHandle<T> {
  return {
    get emitted() {
      return output.emitted as readonly Emitted<T>[];
    },
    get records() {
      return output.emitted.map(({ record }) => record as T);
    },
  };
}

function sideName(uid: string, side: string): string {
  return `${uid}/${side}`;
}

function noSuch(what: string, name: string, there: readonly string[]): MillraceError {
  const list = there.length === 0 ? 'none' : there.join(', ');
  return new MillraceError('bad-argument', `the test has no ${what} ${name}; there is ${list}`);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
