import { promises as fs } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Clock, MillraceError, type Timer } from '@millrace/kernel';

const beatMs = 5000;
/** A lock that was not renewed for so long belongs to a process that is gone. */
const staleMs = 60_000;
const startToleranceMs = 2000;
/** Processes that may share one directory. */
const countMax = 64;

interface Owner {
  readonly host: string;
  readonly pid: number;
  /** When the process began: in containers every life has the same number. */
  readonly startedMs: number;
  readonly nonce: string;
}

/** A part of the directory that this process alone uses. */
export interface CacheDirectory {
  readonly path: string;
  /** False when another process has taken it over, because this one did not run for a while. */
  readonly stillOwned: () => Promise<boolean>;
  readonly release: () => Promise<void>;
}

/**
 * Takes the first of `<root>/0`, `<root>/1`, … that no living process uses, so that a runner that starts again finds what it had.
 * A lock names host and process; it is renewed, and taken over when its process is gone.
 */
export async function takeCacheDirectory(
  root: string,
  { clock, nonce }: { readonly clock: Clock; readonly nonce: string },
): Promise<CacheDirectory> {
  const owner: Owner = { host: hostname(), pid: process.pid, startedMs: startedMs(clock), nonce };
  try {
    for (let i = 0; i < countMax; i++) {
      const path = join(root, String(i));
      await fs.mkdir(path, { recursive: true });
      if (await take(path, owner, clock)) return hold(path, owner, clock);
    }
  } catch (error) {
    throw bad(root, error instanceof Error ? error.message : String(error), error);
  }
  throw bad(root, `${countMax} processes use it`);
}

async function take(path: string, owner: Owner, clock: Clock): Promise<boolean> {
  const lock = join(path, 'lock');
  const next = join(path, 'lock.next');
  if (!(await isFree(lock, clock))) return false;
  // Who has `lock.next` is the only one who may change the lock.
  if (!(await create(next, owner))) {
    if (await isFresh(next, clock)) return false;
    await fs.rm(next, { force: true });
    if (!(await create(next, owner))) return false;
  }
  if (await isFree(lock, clock)) {
    await fs.rename(next, lock);
    return true;
  }
  await fs.rm(next, { force: true });
  return false;
}

async function create(path: string, owner: Owner): Promise<boolean> {
  try {
    await fs.writeFile(path, JSON.stringify(owner), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') return false;
    throw error;
  }
}

async function isFree(lock: string, clock: Clock): Promise<boolean> {
  const owner = await read(lock);
  if (owner === undefined) return true;
  if (owner.host === hostname() && !isAlive(owner, clock)) return true;
  return !(await isFresh(lock, clock));
}

async function isFresh(path: string, clock: Clock): Promise<boolean> {
  const stats = await fs.stat(path).catch(() => undefined);
  return stats !== undefined && clock.nowMs() - stats.mtimeMs < staleMs;
}

async function read(lock: string): Promise<Owner | undefined> {
  const text = await fs.readFile(lock, 'utf8').catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Owner;
  } catch {
    return undefined; // torn by a crash of the system
  }
}

function startedMs(clock: Clock): number {
  return clock.nowMs() - process.uptime() * 1000;
}

function isAlive({ pid, startedMs: theirs }: Owner, clock: Clock): boolean {
  if (pid === process.pid) return Math.abs(theirs - startedMs(clock)) < startToleranceMs;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM';
  }
}

function hold(path: string, owner: Owner, clock: Clock): CacheDirectory {
  const lock = join(path, 'lock');
  let timer: Timer;
  const beat = (): void => {
    timer = clock.schedule(beatMs, beat);
    // Failing, the lock grows stale, and whoever takes over is noticed.
    fs.utimes(lock, clock.nowMs() / 1000, clock.nowMs() / 1000).catch(() => undefined);
  };
  beat();
  const stillOwned = async (): Promise<boolean> => (await read(lock).catch(() => undefined))?.nonce === owner.nonce;
  return {
    path,
    stillOwned,
    release: async () => {
      timer.cancel();
      if (await stillOwned()) await fs.rm(lock, { force: true });
    },
  };
}

function bad(root: string, why: string, cause?: unknown): MillraceError {
  return new MillraceError('bad-setting', `setting "diskCache" is ${JSON.stringify(root)}: ${why}`, {
    details: { setting: 'diskCache', value: root },
    cause,
  });
}
