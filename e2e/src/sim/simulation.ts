import { isKind, sleep } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { Attempt } from './attempt.ts';
import { turn } from './eager-clock.ts';
import { checkJobs, deleteAll, sweepAll } from './final-check.ts';
import { Housekeeping } from './housekeeping.ts';
import { newWorld, type Tally, type Weather, type World } from './world.ts';

/** Which life a simulation lets its jobs lead. */
export interface Life {
  readonly weather: Weather;
  /** Attempts of the first job, one after the other; each may linger when the next has taken over. */
  readonly attempts: number;
  /** Pause between two attempts, up to. */
  readonly attemptMs: number;
  /** Processes that sweep all jobs, and their pause, up to. */
  readonly sweepers: number;
  readonly sweepMs: number;
  readonly graceMs: number;
  /** Forks that are begun, from any checkpoint of any job; each gets an attempt of its own. */
  readonly forks: number;
  /** Jobs that are deleted meanwhile, parents before children or after. */
  readonly deletions: number;
  /** Does again and again what must not be done: for canaries, which show that it would be noticed. */
  readonly saboteur?: (world: World) => Promise<void>;
}

/**
 * One simulation: attempts that crash, stall, linger as zombies or stop, beside sweeps, forks and deletions, over one
 * store, in simulated time. Then quiet: every job that is left restores exactly; sweeps leave what is needed and nothing
 * else; when all jobs are deleted, nothing. Resolves to what was wrong.
 */
export async function simulate(seed: number, life: Life): Promise<{ readonly wrong: string[]; readonly tally: Tally }> {
  const clock = new ManualClock(1_700_000_000_000);
  const world = newWorld(seed, clock, life.weather);
  await driveAll(clock, live(world, life));
  const wrong = await driveAll(clock, rest(world));
  return { wrong: [...world.store.violations, ...wrong], tally: world.tally };
}

async function live(world: World, life: Life): Promise<void> {
  const { clock, random } = world;
  const attempts: Attempt[] = [];
  const running: Promise<unknown>[] = [];
  let isOver = false;
  const watch = (what: string, work: Promise<unknown>): void => {
    running.push(work.catch((error: unknown) => world.store.violations.push(`${what}: ${String(error)}`)));
  };
  const begin = (job: string): void => {
    const attempt = new Attempt(world, job);
    attempts.push(attempt);
    watch(`an attempt of ${job}`, attempt.run());
  };
  for (let i = 0; i < life.sweepers; i++)
    watch(
      'a sweeper',
      sweeping(world, life, () => isOver),
    );
  if (life.saboteur !== undefined)
    watch(
      'the saboteur',
      sabotage(world, life.saboteur, () => isOver),
    );
  const forking = forks(world, life, begin);
  const deleting = deletions(world, life);
  for (let i = 0; i < life.attempts; i++) {
    begin('bank');
    await sleep(clock, 60 + random.below(life.attemptMs));
    const fate = random.below(3);
    if (fate === 0) attempts.at(-1)?.dfs.crash();
    if (fate === 1) attempts.at(-1)?.stop();
  }
  await Promise.all([forking, deleting]);
  isOver = true;
  for (const attempt of attempts) attempt.stop();
  world.calm();
  await Promise.all(running);
}

async function rest(world: World): Promise<string[]> {
  await checkJobs(world);
  const leaked = await sweepAll(world);
  await checkJobs(world);
  return [...leaked, ...(await deleteAll(world)), ...world.store.files().map((file) => `${file} is left at the end`)];
}

async function sweeping(world: World, { sweepMs, graceMs }: Life, isOver: () => boolean): Promise<void> {
  const { clock, random, store } = world;
  const housekeeping = new Housekeeping(world);
  while (!isOver()) {
    await sleep(clock, random.below(sweepMs));
    const job = store.jobs[random.below(Math.max(1, store.jobs.length))];
    if (job !== undefined) await tolerate(housekeeping.sweep(job, { graceMs, isOver: false }));
  }
}

async function sabotage(world: World, saboteur: (world: World) => Promise<void>, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await sleep(world.clock, world.random.below(30));
    await tolerate(saboteur(world));
  }
}

/** Forks checkpoints of any job. One that fails is repeated under its claim, or left as it is. */
async function forks(world: World, life: Life, begin: (job: string) => void): Promise<void> {
  const { clock, random, store } = world;
  for (let i = 0; i < life.forks; i++) {
    await sleep(clock, 40 + random.below(life.attemptMs));
    const parent = store.jobs[random.below(Math.max(1, store.jobs.length))];
    const checkpoints = parent === undefined ? [] : (store.record(parent)?.checkpoints ?? []);
    const entry = checkpoints[random.below(Math.max(1, checkpoints.length))];
    if (parent === undefined || entry === undefined) continue;
    const child = `fork ${i}`;
    const claim = random.hex(8);
    for (let tries = 1 + random.below(4); tries > 0 && store.record(child) === undefined; tries--) {
      const housekeeping = new Housekeeping(world);
      // Some die in the middle.
      if (random.float() < 0.2)
        housekeeping.dfs.crashAt(1 + random.below(20), random.float() < 0.5 ? 'before' : 'after');
      await tolerate(housekeeping.fork(parent, child, claim, entry));
    }
    if (store.record(child)?.claim !== claim) world.tally.forksAbandoned++;
    else begin(child);
  }
}

async function deletions(world: World, life: Life): Promise<void> {
  const { clock, random, store, tally } = world;
  for (let i = 0; i < life.deletions; i++) {
    await sleep(clock, 80 + random.below(life.attemptMs * 2));
    const job = store.jobs[random.below(Math.max(1, store.jobs.length))];
    if (job === undefined || store.record(job)?.deleted === true) continue;
    await tolerate(new Housekeeping(world).delete(job, random.hex(8)));
    tally.deleted++;
  }
}

/** What passes, and what was given up while it was looked at. Anything else is wrong. */
async function tolerate(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isKind(error, 'retry') && !isKind(error, 'setup') && !isKind(error, 'input')) throw error;
  });
}

/** Turns without a timer after which work that waits is taken for hanging. */
const patience = 2000;

/** As `drive`, for work that also takes turns of its own: a merge gives way after every piece. */
async function driveAll<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  work.then(settle, settle);
  for (let idle = 0; idle < patience; ) {
    await turn();
    if (settled) return await work;
    idle = clock.advanceToNext() ? 0 : idle + 1;
  }
  throw new Error('deadlock: the work waits and no timer is pending');
}
