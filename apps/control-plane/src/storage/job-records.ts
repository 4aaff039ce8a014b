import type { CheckpointEntry, JobRecord } from '@millrace/proto/control';
import type { JobRecords } from '@millrace/ufs';
import { liveCheckpoints } from '../record/transitions.ts';
import type { ControlStorage } from './control-storage.ts';

export interface StoredRecordsOptions {
  readonly storage: Pick<ControlStorage, 'readRecord' | 'claimRecord'>;
  /** The holder objects that a registered checkpoint names. */
  readonly snapshotsOf: (entry: CheckpointEntry) => Promise<readonly string[]>;
}

/** What forks have to know of jobs, read from their records. */
export class StoredRecords implements JobRecords {
  readonly #options: StoredRecordsOptions;

  constructor(options: StoredRecordsOptions) {
    this.#options = options;
  }

  async liveHolders(job: string): Promise<readonly string[]> {
    const record = await this.#options.storage.readRecord(job);
    return record === undefined ? [] : await this.holdersOf(record);
  }

  /** Of this version of the record. Rejects when one of its checkpoints cannot be read. */
  async holdersOf(record: JobRecord): Promise<readonly string[]> {
    return [...new Set((await Promise.all(liveCheckpoints(record).map(this.#options.snapshotsOf))).flat())];
  }

  /** A child without a record gets one that says so, and that the fork will meet if it was only held up. */
  async isAbandoned(child: string, claim: string): Promise<boolean> {
    const { storage } = this.#options;
    const record =
      (await storage.readRecord(child)) ??
      (await storage.claimRecord(
        child,
        `abandoned/${claim}`,
        (current, generation) => current ?? abandoned(child, generation),
      ));
    return record.fork?.claim !== claim;
  }
}

function abandoned(id: string, generation: number): JobRecord {
  return {
    id,
    job: id,
    generation,
    round: 0,
    checkpoints: [],
    maxParallelism: 1,
    finished: true,
    deleted: true,
    run: '',
    runStart: 0,
    closedRound: 0,
    dropping: [],
  };
}
