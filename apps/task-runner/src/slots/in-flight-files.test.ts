import { MemoryDfs } from '@millrace/dfs';
import { systemClock as clock, SeededRandom } from '@millrace/kernel';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { openJobStorage, retire } from '@millrace/ufs';
import { describe, expect, it } from 'vitest';
import { inFlightFiles } from './in-flight-files.ts';

function bench() {
  const dfs = new MemoryDfs(clock);
  const storage = openJobStorage({ dfs, jobId: 'job', generation: 3, clock, random: new SeededRandom(1), telemetry });
  return { dfs, storage, files: inFlightFiles(storage, 3) };
}

const name = { checkpoint: 7, operator: 'sum', subtask: 1 };
const data = new TextEncoder().encode('records under way');

describe('records in flight that are too large for the checkpoint itself', () => {
  it('are a file of the job that the checkpoint holds and its retention deletes', async () => {
    const { storage, files } = bench();
    const file = await files.write(name, data);
    expect(await files.read(file)).toEqual(data);
    const [path] = file.holders as [string];
    expect(storage.namespace.roundOf(path)).toEqual({ checkpoint: 7, generation: 3 });
    expect((await storage.holders.read(path)).files).toEqual([expect.objectContaining({ id: file.id })]);
    const source = { dfs: storage.dfs, namespace: storage.namespace, holders: storage.holders };
    const report = await retire(source, storage.reaper, { dropped: [path], live: [] });
    expect([report.filesRemoved, report.failed]).toEqual([1, 0]);
    await expect(files.read(file)).rejects.toMatchObject({ code: 'ufs-missing' });
  });

  it('are refused when damaged', async () => {
    const { files } = bench();
    const file = await files.write(name, data);
    await expect(files.read({ ...file, crc32: file.crc32 ^ 1 })).rejects.toMatchObject({ code: 'ufs-corrupt' });
  });
});
