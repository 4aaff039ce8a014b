import { fileURLToPath } from 'node:url';
import type { Clock, Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { Dfs } from './dfs.ts';
import { LocalDfs } from './local/local-dfs.ts';
import { MemoryDfs } from './memory-dfs.ts';
import { MeteredDfs } from './metered-dfs.ts';
import { backstopMs, type RemoteSettings } from './remote/remote-uri.ts';
import { RetryingDfs } from './retrying-dfs.ts';
import { badUri, UriParameters, type UriSource } from './uri-parameters.ts';

export interface OpenDfsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Name of the setting that the URI comes from, for messages. Default `dfs`. */
  readonly setting?: string;
}

interface Opened {
  readonly driver: Dfs;
  /** Of drivers that send requests over a network. */
  readonly settings?: RemoteSettings;
}

/**
 * Opens the file system that a setting names: `file:///directory`, a plain path (relative to the working directory),
 * `s3://bucket/prefix?parameters`, `hdfs://namenode:httpport/directory?parameters`, or `memory:` (a new, empty one
 * that ends with the process). `?fsync=false` behind a file URI gives up safety against power loss for speed. The
 * result counts, traces and retries. A driver's code is loaded when it is asked for.
 */
export async function openDfs(uri: string, options: OpenDfsOptions): Promise<Dfs> {
  const { clock, random, telemetry } = options;
  const { driver, settings } = await openDriver({ uri, setting: options.setting ?? 'dfs' }, options);
  const retries = telemetry.metrics.counter(
    'millrace_dfs_retries_total',
    'Requests to the distributed file system that were repeated.',
  );
  return new RetryingDfs(new MeteredDfs(driver, { clock, telemetry }), {
    clock,
    random,
    // A remote driver stops its own requests in time; an operation may be several.
    ...(settings === undefined ? {} : { attemptsMax: settings.attempts, timeoutMs: backstopMs(settings) }),
    onRetry: (operation, error) => {
      retries.add(1, { code: error.code });
      telemetry.log.warn('file system request failed and is repeated', { operation, error: error.message });
    },
  });
}

async function openDriver(source: UriSource, options: OpenDfsOptions): Promise<Opened> {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(source.uri)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      if (source.uri === '') throw badUri(source, `it is empty; ${known}`);
      return { driver: await LocalDfs.open(source.uri, options) };
    case 'file':
      return { driver: await openFile(source, options) };
    case 'memory':
      return { driver: new MemoryDfs(options.clock) };
    case 's3': {
      const { openS3 } = await import('./s3/open-s3.ts');
      return await openS3(source, options);
    }
    case 'hdfs': {
      const { openHdfs } = await import('./hdfs/open-hdfs.ts');
      return await openHdfs(source, options);
    }
    default:
      throw badUri(source, `the scheme "${scheme}" is unknown; ${known}`);
  }
}

const known = 'use file:///directory, a path, s3://bucket/prefix, hdfs://namenode:9870/directory or memory:';

function openFile(source: UriSource, options: OpenDfsOptions): Promise<Dfs> {
  const url = parse(source);
  const parameters = new UriParameters(source, url.searchParams);
  const fsync = parameters.flag('fsync') ?? true;
  parameters.end();
  url.search = '';
  return LocalDfs.open(directoryOf(source, url), { ...options, fsync });
}

function parse(source: UriSource): URL {
  // `new URL` would read "file:state" as /state, which is not where its writer means.
  if (!/^file:\/\//i.test(source.uri)) throw badUri(source, 'a file URI starts with file:///');
  const url = URL.parse(source.uri);
  if (url === null) throw badUri(source, 'it is no URI');
  return url;
}

function directoryOf(source: UriSource, url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw badUri(source, error instanceof Error ? error.message : String(error));
  }
}
