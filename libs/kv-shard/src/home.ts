/**
 * Where a service's shards lie in its directory:
 *
 *     jobs/<job>/<operator>/generation            the newest attempt that opened the table
 *     jobs/<job>/<operator>/snapshots/<id>/       a snapshot: snapshot.json and a directory for each part
 *     work/<process>-<start>-<random>/<n>/        databases in use; of no worth once their process has ended
 *
 * Crash order: a snapshot is built beside its place and gets its name when it is whole, so what has a name is whole. A
 * crash leaves `.partial` directories and those of `work`, which the next start removes. One process at a time has a directory.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type KeyGroupRange, MillraceError, type Random } from '@millrace/kernel';
import { z } from 'zod';

const keyGroup = z.number().int().min(0).max(65_535);
const snapshotSchema = z.object({
  maxParallelism: z.number().int().min(1),
  engine: z.string(),
  entries: z.number(),
  parts: z.array(
    z.object({ name: z.string().regex(/^part-\d{1,5}$/), start: keyGroup, end: keyGroup, holdsMore: z.boolean() }),
  ),
});

/** What `snapshot.json` says. A part is a database that holds key groups `start` to `end` of the table. */
export type SnapshotFile = z.output<typeof snapshotSchema>;

export interface SnapshotName {
  readonly job: string;
  readonly operator: string;
  readonly checkpoint: number;
  readonly generation: number;
  readonly keyGroups: KeyGroupRange;
}

export class Home {
  readonly #directory: string;
  readonly #work: string;
  #databases = 0;

  private constructor(directory: string, random: Random) {
    this.#directory = directory;
    this.#work = join(directory, 'work', `${process.pid}-${processStartMs}-${random.hex(6)}`);
  }

  /** Removes what dead processes left. */
  static async open(directory: string, random: Random): Promise<Home> {
    const home = new Home(directory, random);
    let others = 0;
    for (const name of await names(join(directory, 'work'))) {
      const [pid, startMs] = name.split('-', 2).map(Number) as [number, number];
      if (isAlive(pid, startMs)) others++;
      else await remove(join(directory, 'work', name));
    }
    if (others === 0) await home.#removePartial();
    await mkdir(home.#work, { recursive: true });
    return home;
  }

  /** A directory for a database, not made yet. */
  nextDatabase(): string {
    return join(this.#work, String(this.#databases++));
  }

  async removeDatabase(directory: string): Promise<void> {
    await remove(directory);
  }

  async close(): Promise<void> {
    await remove(this.#work);
  }

  /** Unique among the snapshots of its job; one part of a path. */
  snapshotId({ operator, checkpoint, generation, keyGroups }: SnapshotName): string {
    return `${encodeName(operator)}/${checkpoint}-g${generation}-k${keyGroups.start}`;
  }

  /** Builds a snapshot in `fill`'s directory and then gives it its name; the same one made again replaces it. */
  async putSnapshot(job: string, id: string, fill: (directory: string) => Promise<SnapshotFile>): Promise<void> {
    const directory = this.#snapshot(job, id);
    const partial = `${directory}.partial`;
    await remove(partial);
    await mkdir(partial, { recursive: true });
    try {
      const file = await fill(partial);
      await writeFile(join(partial, 'snapshot.json'), JSON.stringify(file), { flush: true });
      await remove(directory);
      await rename(partial, directory);
    } catch (error) {
      await remove(partial);
      throw error;
    }
  }

  /** Rejects with `kv-snapshot-missing` when this service does not have it. */
  async readSnapshot(job: string, id: string): Promise<SnapshotFile> {
    const path = join(this.#snapshot(job, id), 'snapshot.json');
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (cause) {
      const message = `snapshot ${id} of ${job} is not in ${this.#directory}`;
      throw new MillraceError('kv-snapshot-missing', message, { cause, details: { job, snapshot: id } });
    }
    return snapshotSchema.parse(JSON.parse(text));
  }

  partDirectory(job: string, id: string, part: string): string {
    return join(this.#snapshot(job, id), part);
  }

  /** Snapshots that a crash left unfinished, or half removed. */
  async #removePartial(): Promise<void> {
    const jobs = join(this.#directory, 'jobs');
    for (const job of await names(jobs)) {
      for (const operator of await names(join(jobs, job))) {
        const snapshots = join(jobs, job, operator, 'snapshots');
        for (const name of await names(snapshots)) {
          if (name.endsWith('.partial')) await remove(join(snapshots, name));
        }
      }
    }
  }

  async jobs(): Promise<readonly string[]> {
    return (await names(join(this.#directory, 'jobs'))).map(decodeURIComponent);
  }

  async snapshots(job: string): Promise<readonly string[]> {
    const root = join(this.#directory, 'jobs', encodeName(job));
    const ids: string[] = [];
    for (const operator of await names(root)) {
      for (const name of await names(join(root, operator, 'snapshots'))) {
        if (!name.endsWith('.partial')) ids.push(`${operator}/${name}`);
      }
    }
    return ids;
  }

  async removeSnapshot(job: string, id: string): Promise<void> {
    const directory = this.#snapshot(job, id);
    // First out of sight: a crash must not leave half a snapshot that has a name.
    await rename(directory, `${directory}.partial`).catch(ignoreMissing);
    await remove(`${directory}.partial`);
  }

  async readGeneration(job: string, operator: string): Promise<number> {
    const path = join(this.#operator(job, operator), 'generation');
    const text = await readFile(path, 'utf8').catch(ignoreMissing);
    return text === undefined ? 0 : Number(text);
  }

  async writeGeneration(job: string, operator: string, generation: number): Promise<void> {
    const directory = this.#operator(job, operator);
    await mkdir(directory, { recursive: true });
    const path = join(directory, 'generation');
    const partial = `${path}.${basename(this.#work)}-${this.#databases++}.partial`;
    await writeFile(partial, String(generation));
    await rename(partial, path);
  }

  #operator(job: string, operator: string): string {
    return join(this.#directory, 'jobs', encodeName(job), encodeName(operator));
  }

  #snapshot(job: string, id: string): string {
    const match = /^([^/]+)\/(\d{1,15}-g\d{1,15}-k\d{1,5})$/.exec(id);
    if (match === null || encodeName(decodeURIComponent(match[1] as string)) !== match[1]) {
      throw new MillraceError('bad-argument', `${JSON.stringify(id)} names no snapshot`);
    }
    return join(this.#directory, 'jobs', encodeName(job), match[1] as string, 'snapshots', match[2] as string);
  }
}

/** A name as one part of a path, reversible. */
function encodeName(name: string): string {
  const encoded = encodeURIComponent(name);
  return encoded === '.' || encoded === '..' ? encoded.replaceAll('.', '%2E') : encoded;
}

async function names(directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch(ignoreMissing)) ?? [];
}

async function remove(directory: string): Promise<void> {
  // A database that is being closed may still put a file there.
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** In a container every process may have the same number: only the time of its start tells it from the one before. */
const processStartMs = Math.round(performance.timeOrigin);

function isAlive(pid: number, startMs: number): boolean {
  if (pid === process.pid) return startMs === processStartMs;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
