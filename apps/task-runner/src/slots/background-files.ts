/** What the thread that builds a slot's tables opens: a file system of its own and the job's files on it. */
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { startTelemetry } from '@millrace/telemetry';
import { type FileStore, openJobStorage } from '@millrace/ufs';
import { type DiskCachePlace, openThreadCache } from '../disk-cache/compose.ts';

export interface BackgroundFilesConfig {
  readonly dfs: string;
  readonly jobId: string;
  readonly generation: number;
  readonly diskCache?: DiskCachePlace | undefined;
}

/** Called by the thread (`WorkerExecutor` of @millrace/lsm). */
export async function openBackgroundFiles(
  config: BackgroundFilesConfig,
): Promise<{ files: FileStore; close(): Promise<void> }> {
  const { jobId, generation } = config;
  const running = await startTelemetry({ service: 'task-runner', clock, env: process.env });
  const { telemetry } = running;
  const dfs = await openDfs(config.dfs, { clock, random, telemetry, setting: 'state' });
  const cache = openThreadCache(config.diskCache, true);
  const storage = openJobStorage({ dfs, jobId, generation, clock, random, telemetry, cache });
  return {
    files: storage.files,
    close: async () => {
      await storage.close();
      cache?.close();
      await dfs.close();
      await running.shutdown();
    },
  };
}
