import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import type { Dfs } from './dfs.ts';
import { LocalDfs } from './local/local-dfs.ts';
import { MemoryDfs } from './memory-dfs.ts';
import { openDfs } from './open-dfs.ts';
import { dfsConformance } from './testing/conformance.ts';

const options = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };

async function inDirectory<T extends Dfs>(
  open: (directory: string) => Promise<T>,
): Promise<{ dfs: T; cleanup(): Promise<void> }> {
  const directory = await fs.mkdtemp(join(tmpdir(), 'millrace-dfs-'));
  const dfs = await open(directory);
  const cleanup = async (): Promise<void> => {
    await dfs.close();
    await fs.rm(directory, { recursive: true });
  };
  return { dfs, cleanup };
}

dfsConformance('LocalDfs', () => inDirectory((directory) => LocalDfs.open(directory, { ...options, fsync: false })));
dfsConformance('openDfs of a file URI', () =>
  inDirectory((directory) => openDfs(`file://${directory}?fsync=false`, options)),
);
dfsConformance('MemoryDfs', async () => ({ dfs: new MemoryDfs(systemClock), cleanup: () => Promise.resolve() }));
dfsConformance('openDfs of memory:', async () => ({
  dfs: await openDfs('memory:', options),
  cleanup: () => Promise.resolve(),
}));
