/**
 * The table against a sorted map: random writes, reads, scans, flushes, compactions, snapshots and restores at other
 * ranges, under a manual clock, with limits so small that everything happens often. `MILLRACE_SEED` replays one seed,
 * `MILLRACE_CASES` multiplies their number.
 */
import { BlockCache } from '@millrace/cache';
import { MillraceError, type Random, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import type { BackgroundExecutor } from '../background/executor.ts';
import { inlineExecutor } from '../background/inline-executor.ts';
import { clipManifest, filesOf, type Manifest, unionManifests } from '../manifest/manifest.ts';
import { manifestFromJson, manifestToJson } from '../manifest/manifest-json.ts';
import { compact } from '../remote/compact.ts';
import type { MergeService } from '../remote/merge-service.ts';
import { defaultRemoteExecutorLimits, RemoteExecutor } from '../remote/remote-executor.ts';
import { collect, getMany, put, remove, scanAll, tinyLimits } from '../testing/driver.ts';
import { MemoryFileStore } from '../testing/memory-file-store.ts';
import { LsmTable } from './lsm-table.ts';

interface Entry {
  readonly value: string;
  readonly expiresAtMs: number;
}

type Model = Map<string, Entry>;

/** A table with the keys from `start` to `end` and what it should hold. */
interface Subject {
  readonly table: LsmTable;
  readonly model: Model;
  readonly start: string;
  readonly end: string;
}

interface World {
  readonly random: Random;
  readonly clock: ManualClock;
  readonly files: MemoryFileStore;
  readonly held: Set<string>;
  /** How many of a thousand file operations fail. */
  faults: number;
  readonly isRemote: boolean;
  /** Work of compactors that nobody waits for. */
  readonly late: Set<Promise<unknown>>;
}

/** Splits of the key space; keys begin with a letter from a to h. */
const splits = [['a'], ['a', 'e'], ['a', 'c', 'f'], ['a', 'b', 'd', 'g']] as const;

const seeds =
  process.env['MILLRACE_SEED'] === undefined
    ? Array.from({ length: 5 * Number(process.env['MILLRACE_CASES'] ?? 1) }, (_, i) => i + 1)
    : [Number(process.env['MILLRACE_SEED'])];

function executorOf(world: World): BackgroundExecutor {
  const { files, clock } = world;
  const local = inlineExecutor(files);
  if (!world.isRemote) return local;
  const limits = { ...defaultRemoteExecutorLimits, bytesMin: 0, pauseMs: 20, lateMs: 100 };
  return new RemoteExecutor({ service: badCompactors(world), local, files, clock, telemetry: noTelemetry, limits });
}

/** Compactors that answer, or do not, or do it twice, or die half-way, or are given up and finish all the same. */
function badCompactors({ random, files, late }: World): MergeService {
  return {
    merge: async ({ merge, output }, signal) => {
      const work = () => compact(merge, { files: files.under(output), signal });
      const fate = random.below(6);
      if (fate === 0) throw new MillraceError('compaction-unanswered', 'nobody');
      if (fate === 1) {
        late.add(work().catch(() => undefined));
        throw new MillraceError('compaction-failed', 'too slow');
      }
      if (fate === 2) late.add(work().catch(() => undefined));
      const tables = await work();
      if (fate === 3) throw new MillraceError('compaction-failed', 'died');
      return { tables, attempts: fate === 2 ? 2 : 1 };
    },
    close: () => undefined,
  };
}

function open(world: World, split: readonly string[], part: number, before?: readonly Manifest[]): LsmTable {
  const range = {
    start: Buffer.from(split[part] as string),
    end: Buffer.from(split[part + 1] ?? 'i'),
  };
  const parts = (before ?? []).map((manifest) => clipManifest(manifest, range));
  return new LsmTable({
    files: world.files,
    executor: executorOf(world),
    cache: new BlockCache({ bytesMax: world.random.below(3) * 8192 }),
    clock: world.clock,
    telemetry: noTelemetry,
    limits: tinyLimits,
    manifest: unionManifests(parts),
  });
}

function alive({ model }: Subject, nowMs: number, start = '', end = 'z'): Array<[string, string]> {
  return [...model]
    .filter(([key, entry]) => key >= start && key < end && (entry.expiresAtMs === 0 || entry.expiresAtMs > nowMs))
    .map(([key, entry]): [string, string] => [key, entry.value])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function keyOf(random: Random, { start, end }: Subject): string {
  const from = start.charCodeAt(0);
  const letter = String.fromCharCode(from + random.below(end.charCodeAt(0) - from));
  return `${letter}${random.below(40)}`;
}

async function step(world: World, subject: Subject): Promise<void> {
  const { random, clock } = world;
  const { table, model } = subject;
  const action = random.below(100);
  if (action < 60) {
    const size = random.below(300) === 0 ? 30_000 : random.below(200);
    for (let i = random.below(20); i >= 0; i--) {
      const key = keyOf(random, subject);
      if (random.below(5) === 0) {
        remove(table, key);
        model.delete(key);
      } else {
        const expiresAtMs = random.below(3) === 0 ? clock.nowMs() + 1 + random.below(200) : 0;
        const value = `${random.nextU32()}`.padEnd(size, '.');
        put(table, key, value, expiresAtMs);
        model.set(key, { value, expiresAtMs });
      }
    }
    await table.admit();
  } else if (action < 75) {
    const keys = Array.from({ length: 1 + random.below(8) }, () => keyOf(random, subject));
    const expected = new Map(alive(subject, clock.nowMs()));
    const reading = getMany(table, keys);
    overwrite(subject, keys[0] as string);
    expect(await reading).toEqual(keys.map((key) => expected.get(key)));
  } else if (action < 85) {
    const [from, to] = [keyOf(random, subject), keyOf(random, subject)];
    const expected = alive(subject, clock.nowMs(), from, to);
    const pages = table.scan({ start: Buffer.from(from), end: Buffer.from(to), pageEntriesMax: 1 + random.below(20) });
    for (const [key] of expected.slice(0, 3)) overwrite(subject, key);
    if (random.below(3) === 0) await table.compacted();
    expect(await collect(pages)).toEqual(expected);
  } else if (action < 90) {
    hold(world, (await table.snapshot()).manifest);
  } else if (action < 95) clock.advance(random.below(100));
  else await table.compacted();
}

function overwrite({ table, model }: Subject, key: string): void {
  put(table, key, 'later');
  model.set(key, { value: 'later', expiresAtMs: 0 });
}

function hold(world: World, manifest: Manifest): Manifest {
  for (const file of filesOf(manifest)) world.held.add(file.id);
  return manifestFromJson(JSON.parse(JSON.stringify(manifestToJson(manifest))));
}

/** Takes a snapshot of every table and opens as many as another split has from them, reading no file. */
async function rescale(world: World, subjects: readonly Subject[], split: readonly string[]): Promise<Subject[]> {
  const { clock, files } = world;
  const taken = await Promise.all(subjects.map(({ table }) => table.snapshot()));
  const manifests = taken.map(({ manifest }) => hold(world, manifest));
  await Promise.all(subjects.map(({ table }) => table.close()));
  const all: Model = new Map(subjects.flatMap(({ model }) => [...model]));
  const readsBefore = files.reads;
  const next = split.map((start, part): Subject => {
    const end = split[part + 1] ?? 'i';
    const model: Model = new Map([...all].filter(([key]) => key >= start && key < end));
    return { table: open(world, split, part, manifests), model, start, end };
  });
  expect(files.reads).toBe(readsBefore);
  for (const subject of next) expect(await scanAll(subject.table)).toEqual(alive(subject, clock.nowMs()));
  return next;
}

async function run(seed: number, faults: number, isRemote: boolean): Promise<void> {
  const random = new SeededRandom(seed);
  const clock = new ManualClock(1000);
  const files = new MemoryFileStore();
  const world: World = { random, clock, files, held: new Set(), faults, isRemote, late: new Set() };
  world.files.before = async () => {
    if (random.below(4) === 0) await new Promise((resolve) => setImmediate(resolve));
    if (random.below(1000) < world.faults) throw new MillraceError('lsm-worker-failed', 'injected');
  };
  let subjects: Subject[] = [{ table: open(world, splits[0], 0), model: new Map(), start: 'a', end: 'i' }];
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 60; i++) {
      const subject = subjects[random.below(subjects.length)] as Subject;
      await step(world, subject).catch((error: unknown) => {
        if (!(error instanceof MillraceError && error.message === 'injected')) throw error;
      });
    }
    world.faults = 0;
    subjects = await rescale(world, subjects, splits[random.below(splits.length)] as readonly string[]);
    world.faults = faults;
  }
  world.faults = 0;
  await Promise.all(world.late);
  clock.advance(1000);
  for (const subject of subjects) {
    await subject.table.compacted();
    expect(await scanAll(subject.table)).toEqual(alive(subject, world.clock.nowMs()));
  }
  await Promise.all(subjects.map(({ table }) => table.close()));
  expect(world.files.openWriters).toBe(0);
  // Of tables that were closed before a late compactor was done the sweep takes the rest: their attempt is over.
  await new Promise((resolve) => setImmediate(resolve));
  const left = [...world.files.files.keys()].filter((id) => world.held.has(id) || !id.startsWith('delegated-'));
  expect(left.toSorted()).toEqual([...world.held].toSorted());
}

test.each([
  ['a table holds what a sorted map holds, at any split, and leaves exactly the files that snapshots name', 0, false],
  ['the same while file operations fail', 30, false],
  ['the same while compactors elsewhere are slow, die, are given up or do it twice', 5, true],
])('%s', async (_name, faults, isRemote) => {
  const failures: string[] = [];
  for (const seed of seeds) {
    await run(seed, faults, isRemote).catch((error: unknown) => {
      failures.push(`seed ${seed} (replay with MILLRACE_SEED=${seed}): ${(error as Error).stack}`);
    });
  }
  expect(failures).toEqual([]);
});
