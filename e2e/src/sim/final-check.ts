import { type Holder, Holders, JobNamespace } from '@millrace/ufs';
import { Attempt } from './attempt.ts';
import { Housekeeping } from './housekeeping.ts';
import type { World } from './world.ts';

/** Sweeps that free what another has let go: a fork of a fork lets its parent's files go, and so on. */
const passes = 4;

/** Every job that is left restores exactly and takes a checkpoint. */
export async function checkJobs(world: World): Promise<void> {
  for (const job of world.store.jobs) {
    if (world.store.record(job)?.deleted === true) continue;
    const attempt = new Attempt(world, job);
    await attempt.start(1 + world.random.below(3));
    attempt.work();
    if (!(await attempt.round())) world.store.violations.push(`${job}: a calm round fails`);
    await attempt.check('after the last round');
    await attempt.close();
  }
}

/** Sweeps everything as long as it takes, with no attempt running, and says what is left that nothing needs. */
export async function sweepAll(world: World): Promise<string[]> {
  const housekeeping = new Housekeeping(world);
  for (let pass = 0, left = -1; pass < passes && left !== world.store.files().length; pass++) {
    left = world.store.files().length;
    // Children first, and any order has to do.
    for (const job of world.store.jobs.toReversed()) {
      await housekeeping.sweep(job, { graceMs: 0, isOver: true });
    }
  }
  return await leftovers(world);
}

/** Deletes every job in an order of chance; then nothing but records may be left. */
export async function deleteAll(world: World): Promise<string[]> {
  const housekeeping = new Housekeeping(world);
  const jobs = [...world.store.jobs];
  while (jobs.length > 0) {
    const [job] = jobs.splice(world.random.below(jobs.length), 1) as [string];
    await housekeeping.delete(job, `end of ${job}`);
  }
  return await sweepAll(world);
}

async function leftovers(world: World): Promise<string[]> {
  const { files, objects } = world.store.live();
  const wrong: string[] = [];
  for await (const { path } of world.memory.list('')) {
    const [, room] = path.split('/');
    if (room === 'files' && !files.has(path)) wrong.push(`file ${path} is leaked`);
    if ((room === 'snapshots' || room === 'checkpoints') && !objects.has(path)) wrong.push(`object ${path} is leaked`);
    if (room === 'holders') wrong.push(...(await wrongPin(world, path)));
    if (room === 'origins' && !hasForeignFiles(world, path)) wrong.push(`origin ${path} is leaked`);
  }
  for (const file of files) {
    if ((await world.memory.stat(file)) === undefined) wrong.push(`file ${file} is lost`);
  }
  return wrong;
}

/** A pin holds exactly what its child still needs of that home. */
async function wrongPin(world: World, path: string): Promise<string[]> {
  const holder: Holder = await new Holders(world.memory).read(path);
  const { child } = (holder.value as { readonly fork: { readonly child: string } }).fork;
  const home = new JobNamespace(decodeURIComponent(path.split('/')[0] ?? ''));
  const needed = filesOf(world, child).filter((file) => file.startsWith(home.filesPrefix));
  const pinned = holder.files.map((file) => home.pathOf(file)).sort();
  return pinned.join() === needed.join()
    ? []
    : [`pin ${path} holds ${pinned.length} files, needed are ${needed.length}`];
}

function hasForeignFiles(world: World, path: string): boolean {
  const child = decodeURIComponent(path.split('/')[0] ?? '');
  return filesOf(world, child).some((file) => !file.startsWith(new JobNamespace(child).filesPrefix));
}

/** Files that a job's checkpoints name, in order. */
function filesOf(world: World, job: string): string[] {
  return [...world.store.live([job]).files].sort();
}
