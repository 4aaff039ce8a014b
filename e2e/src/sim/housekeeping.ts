import type { FaultyDfs } from '@millrace/dfs/testing';
import { MillraceError } from '@millrace/kernel';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import {
  eraseJob,
  forkCheckpoint,
  type JobStorage,
  openJobStorage,
  settleOrigins,
  sweepForkPins,
  sweepOrphans,
} from '@millrace/ufs';
import { emptyRecord, recordOf, type SimCheckpoint, SimRecords } from './sim-record.ts';
import type { World } from './world.ts';

export interface Sweep {
  readonly graceMs: number;
  /** No attempt of any job runs any more. */
  readonly isOver: boolean;
}

/** A process that does for jobs what a control plane does: sweeps, forks, deletes. */
export class Housekeeping {
  readonly dfs: FaultyDfs;
  readonly records: SimRecords;
  readonly #world: World;

  constructor(world: World, dfs: FaultyDfs = world.connect()) {
    this.#world = world;
    this.dfs = dfs;
    this.records = new SimRecords({ ...world, dfs });
  }

  /** One pass over a job: what it no longer needs elsewhere, what came to nothing, what nobody holds. */
  async sweep(job: string, { graceMs, isOver }: Sweep): Promise<void> {
    const { tally, clock } = this.#world;
    const storage = this.#open(job);
    const { reaper } = storage;
    const nowMs = clock.nowMs();
    const record = await this.records.find(job);
    if (record === undefined) return;
    // Of a deleted job, too: forks of it that came to nothing hold files.
    await sweepForkPins(storage, reaper, this.records, { graceMs, nowMs });
    if (record.deleted) return void (await eraseJob(storage, reaper, this.records));
    const { checkpoints, claim, generation } = record;
    const live = checkpoints.flatMap(({ holders }) => holders);
    await settleOrigins(storage, reaper, this.records, { claim, live });
    const { filesRemoved } = await sweepOrphans(storage, reaper, {
      liveHolders: live,
      liveCheckpoints: checkpoints.map(({ path }) => path),
      liveGeneration: isOver ? Number.POSITIVE_INFINITY : generation,
      settledCheckpoint: checkpoints.findLast((entry) => entry.generation === generation)?.checkpoint ?? null,
      graceMs,
      nowMs,
    });
    tally.swept += filesRemoved;
    tally.collected += await recordOf({ ...this.#world, dfs: this.dfs }, job).collect(1, reaper);
  }

  /** Makes `child` from a checkpoint of `parent`. May be repeated with the same claim. */
  async fork(parent: string, child: string, claim: string, entry: SimCheckpoint): Promise<void> {
    const { dfs, records } = this;
    const { expected, tally } = this.#world;
    const bytes = await dfs.readAll(entry.path);
    if (bytes === undefined) throw new MillraceError('ufs-checkpoint-gone', `checkpoint ${entry.path} is gone`);
    const { holders } = entry;
    const fork = await forkCheckpoint(dfs, records, { parent, child, claim, holders, generation: 1 });
    const path = this.#open(child).namespace.checkpointPath(entry.checkpoint, 1);
    expected.set(path, expected.get(entry.path) ?? new Map());
    await dfs.putIfAbsent(
      path,
      new TextEncoder().encode(JSON.stringify(fork.relocate(JSON.parse(new TextDecoder().decode(bytes))))),
    );
    const first = { checkpoint: entry.checkpoint, generation: 1, path, holders: fork.holders };
    const value = { ...emptyRecord, round: entry.checkpoint, checkpoints: [first] };
    const record = await records.create(child, claim, value);
    if (record.claim === claim) tally.forked++;
    else tally.forksAbandoned++;
  }

  /** Nothing of the job runs from here on; its forks live. */
  async delete(job: string, claimant: string): Promise<void> {
    const record = recordOf({ ...this.#world, dfs: this.dfs }, job);
    await record.claim({
      claimant,
      change: (current) => ({ ...emptyRecord, claim: claimant, ...current, checkpoints: [], deleted: true }),
    });
    const storage = this.#open(job);
    await eraseJob(storage, storage.reaper, this.records);
  }

  #open(jobId: string): JobStorage {
    const { clock, random } = this.#world;
    return openJobStorage({ dfs: this.dfs, jobId, generation: 0, clock, random, telemetry });
  }
}
