import type { Clock, Random } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import { type CachePolicyName, cachePolicy } from '../policies/policies.ts';
import { cacheChannel, serveCache } from './cache-channel.ts';
import { takeCacheDirectory } from './cache-directory.ts';
import type { RemoteRead } from './copy-loader.ts';
import { DiskCache } from './disk-cache.ts';
import { DiskFiles } from './disk-files.ts';
import type { FileCache } from './file-cache.ts';
import { LocalDisk } from './local-disk.ts';
import { observeDiskCache } from './observe.ts';

export interface DiskCacheSettings {
  /** Any number of processes may name the same one: each takes a part of its own, with limits of its own. */
  readonly directory: string;
  readonly bytesMax: number;
  readonly reserveBytes: number;
  readonly policy: CachePolicyName;
}

export interface OpenDiskCacheOptions {
  readonly fetch: RemoteRead;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

/** Where the threads of a process find its cache. Plain data. */
export interface DiskCachePlace {
  readonly path: string;
  readonly channel: string;
}

/** The disk cache of this process. */
export interface RunningDiskCache {
  readonly place: DiskCachePlace;
  close(): Promise<void>;
}

/** Throws `bad-setting` when the directory cannot be used: a cache that silently stores nothing helps nobody. */
export async function openDiskCache(
  settings: DiskCacheSettings,
  { fetch, clock, random, telemetry }: OpenDiskCacheOptions,
): Promise<RunningDiskCache> {
  const { bytesMax, reserveBytes, policy } = settings;
  const directory = await takeCacheDirectory(settings.directory, { clock, nonce: random.hex(8) });
  const disk = new LocalDisk(directory.path);
  await disk.prepare();
  const cache = await DiskCache.open({
    disk,
    bytesMax,
    reserveBytes,
    policy: cachePolicy(policy),
    fetch,
    clock,
    random,
    log: telemetry.log,
    stillOwned: directory.stillOwned,
  });
  telemetry.log.info('disk cache opened', { path: directory.path, files: cache.files, bytes: cache.bytes, bytesMax });
  const place = { path: directory.path, channel: `millrace-disk-cache-${random.hex(8)}` };
  const stops = [serveCache(cache, place.channel), observeDiskCache(telemetry.metrics, cache)];
  return {
    place,
    close: async () => {
      for (const stop of stops) stop();
      await cache.close();
      await directory.release();
    },
  };
}

export interface OpenDiskFilesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Files are read through once, as by a compaction. */
  readonly scans?: boolean;
}

/** The use of a process's disk cache by one of its threads. */
export function openDiskFiles(place: DiskCachePlace, options: OpenDiskFilesOptions): FileCache {
  return new DiskFiles({ disk: new LocalDisk(place.path), link: cacheChannel(place.channel, options), ...options });
}
