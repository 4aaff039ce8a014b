/** What the thread that builds the tables of an attempt opens: a file system of its own and the job's files on it. */
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { startTelemetry } from '@millrace/telemetry';
import { type FileStore, openJobStorage } from '@millrace/ufs';

export interface BackgroundFilesConfig {
  readonly dfs: string;
  readonly jobId: string;
  readonly generation: number;
}

/** Called by the thread (`WorkerExecutor` of @millrace/lsm). */
export async function openBackgroundFiles(
  config: BackgroundFilesConfig,
): Promise<{ files: FileStore; close(): Promise<void> }> {
  const { jobId, generation } = config;
  const running = await startTelemetry({ service: 'state-service', clock, env: process.env });
  const { telemetry } = running;
  const dfs = await openDfs(config.dfs, { clock, random, telemetry, setting: 'state' });
  const storage = openJobStorage({ dfs, jobId, generation, clock, random, telemetry });
  return {
    files: storage.files,
    close: async () => {
      await storage.close();
      await dfs.close();
      await running.shutdown();
    },
  };
}
