import { MemoryDfs } from '@millrace/dfs';
import type { FaultyDfs } from '@millrace/dfs/testing';
import { isKind, SeededRandom, sleep } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import { openJobStorage } from './job-storage.ts';
import { JobNamespace } from './namespace.ts';
import { FencedObject } from './record/fenced-object.ts';
import { retire } from './retention/retire.ts';
import { sweepOrphans } from './retention/sweep.ts';
import { seeds, seedsTimeoutMs, withSeed } from './testing/seeds.ts';
import { persist, SimulatedAttempt, type World } from './testing/simulated-attempt.ts';
import { unreliable } from './testing/simulated-process.ts';
import { type SimulatedRecord, WatchedStore } from './testing/watched-store.ts';

const jobId = 'job';
const graceMs = 60;

function newWorld(seed: number) {
  const clock = new ManualClock(1_700_000_000_000);
  const random = new SeededRandom(seed);
  const memory = new MemoryDfs(clock);
  const connected: FaultyDfs[] = [];
  const world: World = {
    jobId,
    store: new WatchedStore(memory, new JobNamespace(jobId)),
    clock,
    random,
    connect: (store) => {
      const dfs = unreliable(store, clock, random, { faultChance: 0.02, stallChance: 0.03, stallMs: 200 });
      connected.push(dfs);
      return dfs;
    },
    tally: { registered: 0, aborted: 0, fenced: 0, compactions: 0, crashed: 0, swept: 0, pins: 0 },
  };
  return { world, clock, memory, heal: () => connected.forEach((dfs) => dfs.heal()) };
}

/** A process beside the attempts, with its own way to the store. */
function bystander(world: World) {
  const { clock, random, store } = world;
  const dfs = world.connect(store.as('retention'));
  const record = new FencedObject<SimulatedRecord>({ dfs, directory: `${jobId}/record`, clock, random, backoffMs: 4 });
  const storage = openJobStorage({ dfs, jobId, generation: 0, clock, random, telemetry: noTelemetry });
  return { dfs, record, storage };
}

/** What passes, and what was retired while it was looked at, is met again the next time. */
async function tolerate(work: () => Promise<void>): Promise<void> {
  await work().catch((error: unknown) => {
    if (!isKind(error, 'retry') && !isKind(error, 'setup')) throw error;
  });
}

async function sweeper(world: World, stopped: () => boolean): Promise<void> {
  const { record, storage } = bystander(world);
  while (!stopped()) {
    await sleep(world.clock, world.random.below(60));
    await tolerate(async () => {
      const value = (await record.latest())?.value;
      if (value === undefined) return;
      const { filesRemoved } = await sweepOrphans(storage, storage.reaper, {
        liveHolders: value.checkpoints.flatMap((entry) => entry.holders),
        liveCheckpoints: value.checkpoints.map((entry) => entry.path),
        liveGeneration: value.generation,
        settledCheckpoint:
          value.checkpoints.findLast((entry) => entry.generation === value.generation)?.checkpoint ?? null,
        graceMs,
        nowMs: world.clock.nowMs(),
      });
      world.tally.swept += filesRemoved;
      await record.collect(2, storage.reaper);
    });
  }
}

/** Pins the newest checkpoint, keeps it for a while, reads it, and lets it go. */
async function forker(world: World, stopped: () => boolean): Promise<void> {
  const { dfs, record, storage } = bystander(world);
  for (let i = 0; !stopped(); i++) {
    await sleep(world.clock, world.random.below(120));
    const path = storage.namespace.holderPath(`fork-${i}`);
    await tolerate(async () => {
      const entry = (await record.latest())?.value.checkpoints.at(-1);
      if (entry === undefined) return;
      const files = (await Promise.all(entry.holders.map((holder) => storage.holders.read(holder)))).flatMap(
        (h) => h.files,
      );
      await storage.holders.put(path, { files, value: null, generation: entry.generation });
      const now = (await record.latest())?.value.checkpoints ?? [];
      if (!now.some((kept) => kept.path === entry.path)) return;
      world.store.pins.set(
        path,
        files.map((file) => file.id),
      );
      world.tally.pins++;
      await sleep(world.clock, world.random.below(200));
      for (const file of files) await persist(dfs, () => storage.files.open(file).read(0, file.sizeBytes));
    });
    world.store.pins.delete(path);
    await persist(dfs, async () => {
      const live = ((await record.latest())?.value.checkpoints ?? []).flatMap((entry) => entry.holders);
      await retire(storage, storage.reaper, { dropped: [path], live });
    }).catch((error: unknown) => {
      if (!isKind(error, 'setup')) throw error;
    });
  }
}

/** Attempts that crash, linger as zombies or stop, beside sweeps and forks; then quiet, one last round and one last sweep. */
async function live({ world, memory, heal }: ReturnType<typeof newWorld>): Promise<void> {
  const { random, clock, store } = world;
  let stop = false;
  const bystanders = [sweeper(world, () => stop), sweeper(world, () => stop), forker(world, () => stop)];
  const attempts: SimulatedAttempt[] = [];
  const runs: Promise<void>[] = [];
  for (let i = 0; i < 4; i++) {
    const attempt = new SimulatedAttempt(world);
    attempts.push(attempt);
    runs.push(attempt.run());
    await sleep(clock, 50 + random.below(400));
    const fate = random.below(3);
    if (fate === 0) attempt.crash();
    if (fate === 1) attempt.stop();
  }
  heal();
  stop = true;
  for (const attempt of attempts) attempt.stop();
  await Promise.all([...runs, ...bystanders]);

  const last = new SimulatedAttempt(world);
  last.heal();
  await last.start();
  for (let i = 0; i < 20 && store.record?.checkpoints.at(-1)?.generation !== last.generation; i++) await last.round();
  store.tables.clear();
  const { record, storage, dfs } = bystander(world);
  dfs.heal();
  const value = (await record.latest())?.value as SimulatedRecord;
  const liveHolders = value.checkpoints.flatMap((entry) => entry.holders);
  const liveCheckpoints = value.checkpoints.map((entry) => entry.path);
  // Pins whose release was lost on the way.
  const pins = (await listed(memory, storage.namespace.holdersPrefix)).filter((path) => !store.pins.has(path));
  await retire(storage, storage.reaper, { dropped: pins, live: liveHolders });
  const nowMs = clock.nowMs() + graceMs + 1;
  const over = { liveGeneration: Number.POSITIVE_INFINITY, settledCheckpoint: null };
  await sweepOrphans(storage, storage.reaper, { liveHolders, liveCheckpoints, ...over, graceMs, nowMs });
  const ids = (await listed(memory, storage.namespace.filesPrefix)).map((path) => storage.namespace.fileIdOf(path));
  expect(ids).toEqual([...store.liveFiles()].sort());
  expect(await listed(memory, storage.namespace.snapshotsPrefix)).toEqual([...liveHolders].sort());
  expect(await listed(memory, storage.namespace.checkpointsPrefix)).toEqual([...liveCheckpoints].sort());
  expect(await listed(memory, storage.namespace.holdersPrefix)).toEqual([]);
}

async function listed(memory: MemoryDfs, prefix: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const entry of memory.list(prefix)) paths.push(entry.path);
  return paths;
}

describe('the files of a job under crashes, zombies, lost answers, sweeps and forks', () => {
  it(
    'are never deleted while something live names or uses them, and never leak beyond the last sweep',
    async () => {
      const total: Record<string, number> = {};
      for (const seed of seeds(80)) {
        await withSeed(seed, async () => {
          const simulation = newWorld(seed);
          await drive(simulation.clock, live(simulation));
          expect(simulation.world.store.violations).toEqual([]);
          for (const [name, count] of Object.entries(simulation.world.tally)) total[name] = (total[name] ?? 0) + count;
        });
      }
      if (process.env.MILLRACE_SEEDS !== undefined) console.log('simulated', total);
      // Everything that the test is about has happened, unless a single seed is replayed.
      const missed = Object.keys(total).filter((name) => total[name] === 0);
      expect(process.env.MILLRACE_SEED === undefined ? missed : []).toEqual([]);
    },
    seedsTimeoutMs(80),
  );
});
