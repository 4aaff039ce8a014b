import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toolCacheDir } from '@millrace/temporal-server';

const version = 'v1.8.0';
const home = join(toolCacheDir(), `versitygw-${version}`);
const binary = join(home, 'versitygw');

/** Why the server cannot be had here; undefined when it can. */
export function versitygwMissing(): string | undefined {
  if (existsSync(binary)) return undefined;
  return spawnSync('go', ['version']).status === 0 ? undefined : 'go is not on the PATH';
}

/** The server's program, built once with Go into the cache of tools (`MILLRACE_CACHE_DIR`). */
export function versitygwBinary(): string {
  if (existsSync(binary)) return binary;
  const draft = `${home}-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const go = spawnSync('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${version}`], {
    env: { ...process.env, GOBIN: draft },
    encoding: 'utf8',
    timeout: 900_000,
  });
  if (go.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    throw new Error(`versitygw ${version} could not be built: ${go.error?.message ?? go.stderr.trim().slice(-500)}`);
  }
  renameSync(draft, home);
  return binary;
}
