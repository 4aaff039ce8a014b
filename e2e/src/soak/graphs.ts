import { MemoryDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { defaultLsmLimits, inlineExecutor } from '@millrace/lsm';
import type { StateStore } from '@millrace/state';
import { openLsmStore } from '@millrace/state-lsm';
import { type CaseEnd, randomCase } from '@millrace/streams/simulation';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { openJobStorage } from '@millrace/ufs';

export interface GraphsSoakOptions {
  /** Seeds 1 to so many. */
  readonly cases: number;
  /** Random seeds for so long, in place of that. */
  readonly minutes: number | undefined;
  /** This case alone. */
  readonly seed: number | undefined;
}

/** Cases that run side by side: each waits for turns and timers. */
const atOnce = 4;
const failuresMax = 10;
const progressMs = 10_000;

/** Random jobs; every second one has its state in the LSM. Rejects when one of them publishes what it should not. */
export async function soakGraphs({ cases, minutes, seed }: GraphsSoakOptions): Promise<void> {
  if (seed !== undefined) {
    await runCase(seed, console.log);
    return;
  }
  const began = performance.now();
  let told = began;
  let [next, done, replayedBytes, records] = [0, 0, 0, 0];
  const failures: string[] = [];
  const kinds = new Map<string, number>();
  const more = (): boolean =>
    failures.length < failuresMax &&
    (minutes === undefined ? next < cases : performance.now() - began < minutes * 60_000);
  const count = (end: CaseEnd): void => {
    replayedBytes += end.replayedBytes;
    records += end.records;
    for (const kind of end.kinds) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  };
  const work = async (): Promise<void> => {
    while (more()) {
      const number = ++next;
      try {
        count(await runCase(minutes === undefined ? number : random.nextU32()));
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
        console.error(failures.at(-1));
      }
      done++;
      if (performance.now() - told < progressMs) continue;
      told = performance.now();
      console.log(`${Math.round((told - began) / 1000)} s: ${done} jobs, ${failures.length} wrong`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const operators = [...kinds].map(([kind, times]) => `${kind} ${times}`).join(', ');
  console.log(`${done} jobs, ${records} records, ${replayedBytes} bytes replayed; operators: ${operators}`);
  if (failures.length > 0) throw new Error(`${failures.length} of ${done} jobs are not exact; --seed replays one`);
}

async function runCase(seed: number, log?: (words: string) => void): Promise<CaseEnd> {
  const options = { records: 150, operators: 8, ...(log === undefined ? {} : { log }) };
  if (seed % 2 === 0) return randomCase(seed, options);
  await using stores = new MemoryLsmStores();
  return await randomCase(seed, { ...options, storeOf: (generation) => stores.open(generation) });
}

/** State of one job in the LSM, over files in memory; so small that rows are written out and fetched again all the time. */
class MemoryLsmStores implements AsyncDisposable {
  readonly #dfs = new MemoryDfs(clock);
  readonly #closes: (() => Promise<void>)[] = [];

  async open(generation: number): Promise<StateStore> {
    const storage = openJobStorage({ dfs: this.#dfs, jobId: 'random', generation, clock, random, telemetry });
    const store = openLsmStore({
      files: storage.files,
      holders: storage.holders,
      namespace: storage.namespace,
      executor: inlineExecutor(storage.files),
      cacheBytes: 64 * 1024,
      limits: { ...defaultLsmLimits, memtableBytes: 16 * 1024 },
      clock,
      telemetry,
    });
    this.#closes.push(
      () => store.close(),
      () => storage.close(),
    );
    return store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closes.splice(0)) await close();
  }
}
