import { fileURLToPath } from 'node:url';
import { type Clock, MillraceError, type Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { Dfs } from './dfs.ts';
import { LocalDfs } from './local/local-dfs.ts';
import { MemoryDfs } from './memory-dfs.ts';
import { MeteredDfs } from './metered-dfs.ts';
import { RetryingDfs } from './retrying-dfs.ts';

export interface OpenDfsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Name of the setting that the URI comes from, for messages. Default `dfs`. */
  readonly setting?: string;
}

/**
 * Opens the file system that a setting names: `file:///directory`, a plain path (relative to the working directory) or
 * `memory:` (a new, empty one that ends with the process). `?fsync=false` behind a file URI gives up safety against
 * power loss for speed. The result counts, traces and retries.
 */
export async function openDfs(uri: string, options: OpenDfsOptions): Promise<Dfs> {
  const { clock, random, telemetry } = options;
  const driver = await openDriver(uri, options);
  const retries = telemetry.metrics.counter(
    'millrace_dfs_retries_total',
    'Requests to the distributed file system that were repeated.',
  );
  return new RetryingDfs(new MeteredDfs(driver, { clock, telemetry }), {
    clock,
    random,
    onRetry: (operation, error) => {
      retries.add(1, { code: error.code });
      telemetry.log.warn('file system request failed and is repeated', { operation, error: error.message });
    },
  });
}

async function openDriver(uri: string, options: OpenDfsOptions): Promise<Dfs> {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(uri)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      if (uri === '') throw badUri(uri, options, 'it is empty');
      return LocalDfs.open(uri, options);
    case 'file':
      return openFile(uri, options);
    case 'memory':
      return new MemoryDfs(options.clock);
    default:
      throw badUri(uri, options, `the scheme "${scheme}" is unknown`);
  }
}

function openFile(uri: string, options: OpenDfsOptions): Promise<Dfs> {
  const url = parse(uri, options);
  for (const key of url.searchParams.keys()) {
    if (key !== 'fsync') throw badUri(uri, options, `the parameter "${key}" is unknown`);
  }
  const fsync = url.searchParams.get('fsync') ?? 'true';
  if (fsync !== 'true' && fsync !== 'false') throw badUri(uri, options, 'fsync is neither true nor false');
  url.search = '';
  return LocalDfs.open(directoryOf(uri, url, options), { ...options, fsync: fsync === 'true' });
}

function parse(uri: string, options: OpenDfsOptions): URL {
  // `new URL` would read "file:state" as /state, which is not where its writer means.
  if (!/^file:\/\//i.test(uri)) throw badUri(uri, options, 'a file URI starts with file:///');
  try {
    return new URL(uri);
  } catch {
    throw badUri(uri, options, 'it is no URI');
  }
}

function directoryOf(uri: string, url: URL, options: OpenDfsOptions): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw badUri(uri, options, error instanceof Error ? error.message : String(error));
  }
}

function badUri(uri: string, options: OpenDfsOptions, why: string): MillraceError {
  const setting = options.setting ?? 'dfs';
  return new MillraceError(
    'bad-setting',
    `setting "${setting}" is ${JSON.stringify(uri)}: ${why}; use file:///directory, a path or memory:`,
    { details: { setting, value: uri } },
  );
}
