import { MemoryDfs } from '@millrace/dfs';
import { type Random, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import type { FileRef } from '../file-store.ts';
import type { JobRecords } from '../fork/job-records.ts';
import { type JobStorage, openJobStorage } from '../job-storage.ts';

/** What a job's record would say. */
export interface TinyRecord {
  claim: string;
  checkpoints: (readonly string[])[];
}

/** Jobs on one store in memory, each with a record in plain sight of the test. */
export class ForkedJobs implements JobRecords {
  readonly clock = new ManualClock(1_700_000_000_000);
  readonly memory = new MemoryDfs(this.clock);
  readonly records = new Map<string, TinyRecord>();
  readonly #random: Random = new SeededRandom(1);

  open(jobId: string, generation = 1): JobStorage {
    const { memory: dfs, clock } = this;
    return openJobStorage({ dfs, jobId, generation, clock, random: this.#random, telemetry: noTelemetry });
  }

  async file(jobId: string): Promise<FileRef> {
    const writer = await this.open(jobId).files.create();
    await writer.append(new TextEncoder().encode(writer.id));
    return await writer.seal();
  }

  /** Registers a checkpoint of one table. */
  async checkpoint(jobId: string, checkpoint: number, files: readonly FileRef[]): Promise<readonly string[]> {
    const { holders, namespace } = this.open(jobId);
    const path = namespace.snapshotPath({ checkpoint, operator: 'op', subtask: 0, generation: 1 });
    const value = { tables: files.map((file) => ({ file, level: 0 })) };
    await holders.put(path, { files, value, generation: 1 });
    const record = this.records.get(jobId) ?? { claim: 'first', checkpoints: [] };
    this.records.set(jobId, { ...record, checkpoints: [...record.checkpoints, [path]] });
    return [path];
  }

  async liveHolders(job: string): Promise<readonly string[]> {
    return this.records.get(job)?.checkpoints.flat() ?? [];
  }

  async isAbandoned(child: string, claim: string): Promise<boolean> {
    if (!this.records.has(child)) this.records.set(child, { claim: 'tombstone', checkpoints: [] });
    return this.records.get(child)?.claim !== claim;
  }

  /** Paths of everything that is stored. */
  async left(prefix = ''): Promise<string[]> {
    const found: string[] = [];
    for await (const { path } of this.memory.list(prefix)) found.push(path);
    return found;
  }
}
