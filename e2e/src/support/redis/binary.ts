import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toolCacheDir } from '@millrace/temporal-server';

/** A program and what it needs in its environment. */
export interface Program {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Of Debian: the server and the libraries that a plain installation does not have. */
const packages = [
  'redis-server',
  'redis-tools',
  'libjemalloc2',
  'liblzf1',
  'liblua5.1-0',
  'lua-cjson',
  'lua-bitop',
  'libatomic1',
];

/**
 * A Redis server: the one on the PATH, or, where apt is there, the Debian packages unpacked once into the cache of tools
 * (`MILLRACE_CACHE_DIR`); nothing is installed. Undefined when neither is to be had.
 */
export function redisServer(): Program | undefined {
  if (runs({ path: 'redis-server', env: {} })) return { path: 'redis-server', env: {} };
  const home = join(toolCacheDir(), 'redis-debian');
  if (!existsSync(home) && !unpack(home)) return undefined;
  const libraries = readdirSync(join(home, 'usr/lib'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(home, 'usr/lib', entry.name));
  const program = { path: join(home, 'usr/bin/redis-server'), env: { LD_LIBRARY_PATH: libraries.join(':') } };
  return runs(program) ? program : undefined;
}

function runs({ path, env }: Program): boolean {
  return spawnSync(path, ['--version'], { env: { ...process.env, ...env } }).status === 0;
}

function unpack(home: string): boolean {
  mkdirSync(toolCacheDir(), { recursive: true });
  const draft = mkdtempSync(`${home}-`);
  try {
    if (spawnSync('apt-get', ['download', ...packages], { cwd: draft, timeout: 120_000 }).status !== 0) return false;
    const files = readdirSync(draft).filter((name) => name.endsWith('.deb'));
    for (const file of files) {
      if (spawnSync('dpkg', ['-x', file, 'root'], { cwd: draft }).status !== 0) return false;
    }
    if (!existsSync(join(draft, 'root/usr/bin/redis-server'))) return false;
    renameSync(join(draft, 'root'), home);
    return true;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
