import type { FaultTiming, FaultyDfs } from '@millrace/dfs/testing';
import { isKind } from '@millrace/kernel';
import { describe, expect, test } from 'vitest';
import { Attempt } from './attempt.ts';
import { EagerClock, turn } from './eager-clock.ts';
import { checkJobs, deleteAll, sweepAll } from './final-check.ts';
import { Housekeeping } from './housekeeping.ts';
import type { SimCheckpoint } from './sim-record.ts';
import { newWorld, type World } from './world.ts';

/** What happens after the fault: the same process goes on, or another takes over from one that is dead. */
type Fault = 'error' | 'crash';

/** A stretch of a job's life, at each of whose requests a fault strikes in turn. */
interface Scenario {
  /** Undisturbed. Whatever it opens is closed at the end. */
  prepare(world: World): Promise<readonly Attempt[]>;
  /** Disturbed: the requests of `dfs`. After an error it is played again on the same process. */
  act(stage: Stage): Promise<void>;
}

interface Stage {
  readonly world: World;
  readonly attempts: readonly Attempt[];
  readonly dfs: FaultyDfs;
}

/** Lets background work (merges, removals) go on until it asks for nothing more. */
async function quiet(dfs: FaultyDfs): Promise<void> {
  for (let calm = 0, calls = dfs.calls; calm < 12; calm = calls === dfs.calls ? calm + 1 : 0) {
    calls = dfs.calls;
    await turn();
  }
}

async function rounds(attempt: Attempt, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    attempt.work();
    await attempt.round();
    await quiet(attempt.dfs);
  }
}

/** A job with two checkpoints, and an attempt of it that runs on. */
async function running(world: World, job = 'bank', dfs?: FaultyDfs): Promise<Attempt> {
  const attempt = new Attempt(world, job, dfs);
  await attempt.start(2);
  await rounds(attempt, 2);
  return attempt;
}

const newest = (world: World, job: string): SimCheckpoint =>
  world.store.record(job)?.checkpoints.at(-1) as SimCheckpoint;

const scenarios: Readonly<Record<string, Scenario>> = {
  'a checkpoint': {
    prepare: async (world) => [await running(world)],
    act: async ({ attempts }) => {
      attempts[0]?.work();
      await attempts[0]?.round();
    },
  },
  'checkpoints with the compactions that follow': {
    prepare: async (world) => [await running(world)],
    act: ({ attempts }) => rounds(attempts[0] as Attempt, 4),
  },
  'a restore at another parallelism': {
    prepare: async (world) => {
      await (await running(world)).close();
      return [];
    },
    act: async ({ world, dfs }) => {
      const attempt = new Attempt(world, 'bank', dfs);
      try {
        await attempt.start(3);
        await rounds(attempt, 1);
      } finally {
        await attempt.close();
      }
    },
  },
  'a fork, and the first checkpoint of it': {
    prepare: async (world) => [await running(world)],
    act: async ({ world, dfs }) => {
      await new Housekeeping(world, dfs).fork('bank', 'fork', 'claim', newest(world, 'bank'));
      if (world.store.record('fork')?.claim !== 'claim') return;
      const attempt = new Attempt(world, 'fork', dfs);
      try {
        await attempt.start(1);
        await rounds(attempt, 2);
      } finally {
        await attempt.close();
      }
    },
  },
  'clean-up: sweeps of a job and its fork, and the deletion of the job': {
    prepare: async (world) => {
      const attempt = await running(world);
      await new Housekeeping(world).fork('bank', 'fork', 'claim', newest(world, 'bank'));
      await rounds(attempt, 2);
      await attempt.close();
      const fork = new Attempt(world, 'fork');
      await fork.start(2);
      await rounds(fork, 3);
      await fork.close();
      // A round that nobody registers, and files that nobody names.
      const lost = new Attempt(world, 'bank');
      await lost.start(2);
      lost.dfs.failWhen((call) => call.operation === 'putIfAbsent' && call.path.includes('/record/'), 'before');
      lost.work();
      await lost.round().catch(() => undefined);
      return [];
    },
    act: async ({ world, dfs }) => {
      const housekeeping = new Housekeeping(world, dfs);
      await housekeeping.sweep('bank', { graceMs: 0, isOver: true });
      await housekeeping.sweep('fork', { graceMs: 0, isOver: true });
      await housekeeping.delete('bank', 'deletion');
      await housekeeping.sweep('fork', { graceMs: 0, isOver: true });
    },
  },
};

interface Strike {
  readonly seed: number;
  /** Which request of the scenario, from 1; 0: none. */
  readonly at: number;
  readonly fault: Fault;
  readonly timing: FaultTiming;
}

/** Plays the scenario with a fault, then what comes after it, and checks everything. Resolves to the number of requests. */
async function play(scenario: Scenario, { seed, at, fault, timing }: Strike): Promise<number> {
  const world = newWorld(seed, new EagerClock());
  const attempts = await scenario.prepare(world);
  const dfs = attempts[0]?.dfs ?? world.connect();
  const stage: Stage = { world, attempts, dfs };
  const from = dfs.calls;
  if (at > 0 && fault === 'crash') dfs.crashAt(from + at, timing);
  if (at > 0 && fault === 'error') dfs.failCall(from + at, timing);
  await scenario.act(stage).catch((error: unknown) => {
    if (!isKind(error, 'retry') && !dfs.crashed) throw error;
  });
  await quiet(dfs);
  const requests = dfs.calls - from;
  if (fault === 'error' && at > 0) await scenario.act(stage);
  for (const attempt of attempts) await attempt.close();
  await checkJobs(world);
  const leaked = await sweepAll(world);
  const where = `seed ${seed}, ${fault} ${timing} request ${at}`;
  expect([where, ...world.store.violations, ...leaked]).toEqual([where]);
  await checkJobs(world);
  expect([where, ...(await deleteAll(world)), ...world.store.violations]).toEqual([where]);
  expect(world.store.files()).toEqual([]);
  return requests;
}

/** `MILLRACE_CASES` says with how many seeds every request is struck; otherwise some of one. */
const cases = Number(process.env.MILLRACE_CASES ?? 0);
const strikesUsual = 5;

/** The requests to strike: all, or some spread over the whole, others for each kind of fault. */
function struck(requests: number, kind: number): number[] {
  const step = cases > 0 ? 1 : Math.max(1, Math.ceil(requests / strikesUsual));
  const first = 1 + ((kind * 7) % step);
  return Array.from({ length: Math.ceil((requests - first + 1) / step) }, (_, i) => first + i * step);
}

const kinds: readonly (readonly [Fault, FaultTiming])[] = [
  ['error', 'before'],
  ['error', 'after'],
  ['crash', 'before'],
  ['crash', 'after'],
];

describe.each(Object.entries(scenarios))('%s', (_, scenario) => {
  test.each(kinds)('loses nothing and leaks nothing beyond the sweep: %s %s any request', async (fault, timing) => {
    const kind = kinds.findIndex(([f, t]) => f === fault && t === timing);
    for (let seed = 1; seed <= Math.max(1, cases); seed++) {
      const requests = await play(scenario, { seed, at: 0, fault, timing });
      for (const at of struck(requests, kind)) await play(scenario, { seed, at, fault, timing });
      if (cases > 0) console.log(`seed ${seed}: ${fault} ${timing} each of ${requests} requests`);
      expect(requests).toBeGreaterThan(10);
    }
  });
});
