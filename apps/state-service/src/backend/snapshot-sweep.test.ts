import { MemoryDfs } from '@millrace/dfs';
import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { MemoryStateStore, type SnapshotHandle, type StateStore } from '@millrace/state';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { type JobStorage, openJobStorage, retire } from '@millrace/ufs';
import { expect, it } from 'vitest';
import { specOf } from '../testing/table-driver.ts';
import { HeldSnapshots } from './held-snapshots.ts';
import { SnapshotSweep } from './snapshot-sweep.ts';

const graceMs = 60_000;

/** A store that keeps its snapshots: by job, those that it has. */
function keepingStore(clock: ManualClock, kept: Map<string, Set<string>>): StateStore {
  const store = new MemoryStateStore(clock);
  return {
    name: 'keeping',
    retained: {
      jobs: () => [...kept.keys()],
      list: (job) => [...(kept.get(job) ?? [])],
      release: (job, snapshot) => void kept.get(job)?.delete(snapshot),
    },
    openTable: async (spec, restore) => {
      const table = await store.openTable(spec, restore);
      const snapshot = async (checkpoint: number): Promise<SnapshotHandle> => {
        const handle = await table.snapshot(checkpoint);
        const id = `s${checkpoint}`;
        kept.set(spec.job, (kept.get(spec.job) ?? new Set()).add(id));
        return { ...handle, store: 'keeping', data: { job: spec.job, snapshot: id } };
      };
      return { ...table, spec, snapshot, close: () => table.close() } as typeof table;
    },
    close: () => store.close(),
  };
}

async function bench() {
  const clock = new ManualClock(1000);
  const dfs = new MemoryDfs(clock);
  const random = new SeededRandom(1);
  const kept = new Map<string, Set<string>>();
  const store = keepingStore(clock, kept);
  const openStorage = (jobId: string, generation: number): JobStorage =>
    openJobStorage({ dfs, jobId, generation, clock, random, telemetry });
  const held = new HeldSnapshots({ store, instance: 'a', openStorage });
  const storage = openStorage('job', 1);
  await dfs.put('job/record/1', new Uint8Array(1));
  const sweeper = (): SnapshotSweep => {
    const { retained } = store;
    if (retained === undefined) throw new Error('it keeps its snapshots');
    const { underWay } = held;
    return new SnapshotSweep({ dfs, store: store.name, retained, underWay, intervalMs: 1, graceMs, clock, telemetry });
  };
  const drop = (handle: SnapshotHandle, live: readonly string[]) => {
    return retire({ ...storage }, storage.reaper, { dropped: handle.holders, live });
  };
  return { clock, dfs, kept, held, sweeper, drop };
}

it('a snapshot goes with the last checkpoint that has it, and not before', async () => {
  const { held, kept, sweeper, drop } = await bench();
  const sweep = sweeper();
  const table = await held.openTable(specOf(), []);
  const [first, second] = [await table.snapshot(1), await table.snapshot(2)];
  await sweep.sweep();
  expect([...(kept.get('job') ?? [])]).toEqual(['s1', 's2']);
  await drop(first, second.holders);
  await sweep.sweep();
  expect([...(kept.get('job') ?? [])]).toEqual(['s2']);
});

it('a snapshot that was let go while no service ran is released after the grace period', async () => {
  const { clock, held, kept, sweeper, drop } = await bench();
  const table = await held.openTable(specOf(), []);
  const [first, second] = [await table.snapshot(1), await table.snapshot(2)];
  await drop(first, second.holders);
  const sweep = sweeper();
  await sweep.sweep();
  expect([...(kept.get('job') ?? [])]).toEqual(['s1', 's2']);
  clock.advance(graceMs);
  await sweep.sweep();
  expect([...(kept.get('job') ?? [])]).toEqual(['s2']);
});

it('nothing is released of a job whose record is not there, nor when the file system fails', async () => {
  const { clock, dfs, held, kept, sweeper } = await bench();
  const table = await held.openTable(specOf(), []);
  const handle = await table.snapshot(1);
  const sweep = sweeper();
  await sweep.sweep();
  for await (const { path } of dfs.list('job/')) await dfs.remove(path);
  clock.advance(2 * graceMs);
  await sweep.sweep();
  expect(handle.holders).toHaveLength(1);
  expect([...(kept.get('job') ?? [])]).toEqual(['s1']);
  await dfs.put('job/record/1', new Uint8Array(1));
  dfs.list = () => {
    throw new Error('unreachable');
  };
  await sweep.sweep();
  expect([...(kept.get('job') ?? [])]).toEqual(['s1']);
});
