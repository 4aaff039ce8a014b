import { MemoryDfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { SeededRandom } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import type { FileRef } from '../file-store.ts';
import type { Holder } from '../holder.ts';
import { openJobStorage } from '../job-storage.ts';
import { filesToFree } from './files-to-free.ts';
import { retire } from './retire.ts';
import { type SweepRequest, sweepOrphans } from './sweep.ts';

const hourMs = 3600 * 1000;

function setUp() {
  const clock = new ManualClock(1_700_000_000_000);
  const memory = new MemoryDfs(clock);
  const open = (generation: number, dfs: MemoryDfs | FaultyDfs = memory) =>
    openJobStorage({
      dfs,
      jobId: 'j',
      generation,
      clock,
      random: new SeededRandom(generation),
      telemetry: noTelemetry,
    });
  const storage = open(2);
  const write = async (generation = 2): Promise<FileRef> => {
    const writer = await open(generation).files.create();
    await writer.append(new Uint8Array(100));
    clock.advance(1);
    return await writer.seal();
  };
  const hold = async (checkpoint: number, files: FileRef[], generation = 2): Promise<string> => {
    const path = storage.namespace.snapshotPath({ checkpoint, operator: 'op', subtask: 0, generation });
    await storage.holders.put(path, { files, value: null, generation });
    return path;
  };
  const left = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const entry of memory.list('')) found.push(entry.path);
    return found;
  };
  const path = (file: FileRef): string => storage.namespace.filePath(file.id);
  const request = (changes: Partial<SweepRequest> = {}): SweepRequest => ({
    liveHolders: [],
    liveGeneration: 2,
    settledCheckpoint: null,
    graceMs: hourMs,
    nowMs: clock.nowMs() + 2 * hourMs,
    ...changes,
  });
  const sweep = (changes: Partial<SweepRequest> = {}) => sweepOrphans(storage, storage.reaper, request(changes));
  return { clock, memory, open, storage, write, hold, left, path, sweep, request };
}

describe('filesToFree', () => {
  const holder = (...ids: string[]): Holder => ({
    files: ids.map((id) => ({ id, sizeBytes: 1, crc32: 0 })),
    value: null,
    generation: 1,
  });
  it.each([
    [[], [], []],
    [[holder('a', 'b')], [], ['a', 'b']],
    [[holder('a', 'b')], [holder('b', 'c')], ['a']],
    [[holder('a', 'b'), holder('b', 'c')], [holder('c')], ['a', 'b']],
    [[holder('a')], [holder('a'), holder('b')], []],
  ])('of %j beside %j', (dropped, live, expected) => {
    expect(filesToFree(dropped, live).map((file) => file.id)).toEqual(expected);
  });
});

describe('retirement of a checkpoint', () => {
  it('frees what only the dropped one held, and the objects that go with it', async () => {
    const { write, hold, storage, left, path } = setUp();
    const [a, b] = [await write(), await write()];
    const dropped = await hold(1, [a, b]);
    const live = await hold(2, [b]);
    const report = await retire(storage, storage.reaper, { dropped: [dropped], live: [live] });
    expect(report).toEqual({ filesRemoved: 1, bytesFreed: 100, failed: 0 });
    expect(await left()).toEqual([path(b), live].sort());
    expect((await retire(storage, storage.reaper, { dropped: [dropped], live: [live] })).filesRemoved).toBe(0);
  });

  it('spares what a pin holds, until the pin is dropped', async () => {
    const { write, hold, storage, left, path } = setUp();
    const [a, b] = [await write(), await write()];
    const dropped = await hold(1, [a]);
    const live = await hold(2, [b]);
    const pin = storage.namespace.holderPath('fork');
    await storage.holders.put(pin, { files: [a], value: null, generation: 2 });
    await retire(storage, storage.reaper, { dropped: [dropped], live: [live] });
    expect(await left()).toEqual([path(a), path(b), pin, live].sort());
    await retire(storage, storage.reaper, { dropped: [pin], live: [live] });
    expect(await left()).toEqual([path(b), live].sort());
  });

  it('deletes nothing when a live holder is missing or damaged', async () => {
    const { write, hold, storage, left, memory } = setUp();
    const dropped = await hold(1, [await write()]);
    const live = await hold(2, []);
    const before = await left();
    const missing = retire(storage, storage.reaper, { dropped: [dropped], live: [live, 'j/snapshots/3/op-0-g2'] });
    await expect(missing).rejects.toMatchObject({ code: 'ufs-missing' });
    await memory.put(live, new Uint8Array(5));
    const damaged = retire(storage, storage.reaper, { dropped: [dropped], live: [live] });
    await expect(damaged).rejects.toMatchObject({ code: 'ufs-corrupt' });
    expect(await left()).toEqual(before);
  });

  it('can be repeated after a crash at any request, and then has freed everything', async () => {
    for (let crashAt = 1; ; crashAt++) {
      const { clock, write, hold, storage, left, path, open, memory } = setUp();
      const [a, b, c] = [await write(), await write(), await write()];
      const request = { dropped: [await hold(1, [a, b, c])], live: [await hold(2, [c])] };
      const faulty = new FaultyDfs(memory);
      faulty.crashAt(crashAt, crashAt % 2 === 0 ? 'before' : 'after');
      const crashing = open(2, faulty);
      await drive(clock, retire(crashing, crashing.reaper, request)).catch(() => undefined);
      const crashed = faulty.crashed;
      await retire(storage, storage.reaper, request);
      expect(await left()).toEqual([path(c), ...request.live].sort());
      if (!crashed) break;
    }
  });
});

describe('a sweep', () => {
  it('takes files of an attempt that is over, past the grace period, and reports them', async () => {
    const { write, hold, left, path, sweep } = setUp();
    const [orphan, held] = [await write(1), await write(1)];
    const live = await hold(7, [held]);
    const report = await sweep({ liveHolders: [live], settledCheckpoint: 7 });
    expect(report).toEqual({
      filesRemoved: 1,
      objectsRemoved: 0,
      bytesFreed: 100,
      failed: 0,
      verdicts: { orphan: 1, held: 2, young: 0, 'maybe-in-use': 0, foreign: 0 },
    });
    expect(await left()).toEqual([path(held), live].sort());
    expect(await left()).not.toContain(path(orphan));
  });

  it('spares young files, however their age is told', async () => {
    const { write, left, sweep, clock } = setUp();
    await write(1);
    await sweep({ nowMs: clock.nowMs() + hourMs - 10 });
    expect(await left()).toHaveLength(1);
  });

  it('spares a file of the running attempt without a holder, be it ever so old: a table may have it in use', async () => {
    const { write, left, sweep } = setUp();
    await write(2);
    expect((await sweep({ settledCheckpoint: 9 })).verdicts['maybe-in-use']).toBe(1);
    expect(await left()).toHaveLength(1);
    await sweep({ liveGeneration: 3 });
    expect(await left()).toEqual([]);
  });

  it('takes what a failed round of the running attempt left, once a later round is registered', async () => {
    const { write, hold, left, path, sweep } = setUp();
    const [compacted, kept] = [await write(), await write()];
    const failed = await hold(5, [compacted, kept]);
    await sweep({ settledCheckpoint: 4 });
    expect(await left()).toHaveLength(3);
    const live = await hold(6, [kept]);
    const report = await sweep({ liveHolders: [live], settledCheckpoint: 6 });
    expect(report).toMatchObject({ filesRemoved: 1, objectsRemoved: 1 });
    expect(await left()).toEqual([path(kept), live].sort());
    expect(await left()).not.toContain(failed);
  });

  it('spares a round in flight', async () => {
    const { write, hold, left, sweep } = setUp();
    await hold(8, [await write()]);
    await sweep({ settledCheckpoint: 7 });
    expect(await left()).toHaveLength(2);
  });

  it('keeps the proof while files that rest on it could not be removed', async () => {
    const { write, hold, left, request, open, memory, clock, sweep } = setUp();
    const failed = await hold(5, [await write()]);
    const live = await hold(6, []);
    const faulty = new FaultyDfs(memory);
    faulty.failWhen((call) => call.operation === 'remove' && call.path.startsWith('j/files/'), 'before');
    const { reaper, ...source } = open(2, faulty);
    const wanted = request({ liveHolders: [live], settledCheckpoint: 6 });
    expect(await drive(clock, sweepOrphans(source, reaper, wanted))).toMatchObject({ failed: 1, objectsRemoved: 0 });
    expect(await left()).toContain(failed);
    await sweep({ liveHolders: [live], settledCheckpoint: 6 });
    expect(await left()).toEqual([live]);
  });

  it('takes checkpoint lists that the record does not name, when it is told which it names', async () => {
    const { storage, memory, left, sweep } = setUp();
    const [failed, live] = [storage.namespace.checkpointPath(3, 2), storage.namespace.checkpointPath(4, 2)];
    await memory.put(failed, new Uint8Array(7));
    await memory.put(live, new Uint8Array(7));
    await sweep({ settledCheckpoint: 4 });
    expect(await left()).toHaveLength(2);
    await sweep({ settledCheckpoint: 4, liveCheckpoints: [live] });
    expect(await left()).toEqual([live]);
  });

  it('leaves alone what it did not write, and other jobs', async () => {
    const { memory, left, sweep } = setUp();
    for (const path of ['j/files/README', 'j/snapshots/x', 'j2/files/000000001-1-0123456789ab0', 'jx', 'j/other/y']) {
      await memory.put(path, new Uint8Array(1));
    }
    expect((await sweep()).verdicts.foreign).toBe(2);
    expect(await left()).toHaveLength(5);
  });

  it('deletes nothing when a live holder cannot be read', async () => {
    const { write, left, sweep } = setUp();
    await write(1);
    await expect(sweep({ liveHolders: ['j/snapshots/1/op-0-g1'] })).rejects.toMatchObject({ code: 'ufs-missing' });
    expect(await left()).toHaveLength(1);
  });
});
