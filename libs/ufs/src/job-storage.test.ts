import { crc32 } from 'node:zlib';
import { MemoryDfs } from '@millrace/dfs';
import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import { type FileDelegation, fileOrigin } from './file-id.ts';
import type { FileRef } from './file-store.ts';
import { type JobStorage, openJobStorage } from './job-storage.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function setUp(generation = 3) {
  const clock = new ManualClock(1_700_000_000_000);
  const dfs = new MemoryDfs(clock);
  const open = (seed: number, delegation?: FileDelegation) =>
    openJobStorage({
      dfs,
      jobId: 'flights',
      generation,
      clock,
      random: new SeededRandom(seed),
      telemetry: noTelemetry,
      delegation,
    });
  const write = async ({ files }: JobStorage): Promise<FileRef> => {
    const writer = await files.create();
    await writer.append(bytesOf('x'));
    return await writer.seal();
  };
  const paths = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const entry of dfs.list('')) found.push(entry.path);
    return found;
  };
  return { clock, dfs, storage: open(1), open, delegate: open, paths, write };
}

describe('the files of a job', () => {
  it('are seen whole once sealed and not before', async () => {
    const { storage, paths } = setUp();
    const writer = await storage.files.create();
    await writer.append(bytesOf('hello '));
    await writer.append(bytesOf('world'));
    expect(await paths()).toEqual([]);
    const file = await writer.seal();
    expect(file).toEqual({ id: writer.id, sizeBytes: 11, crc32: crc32(bytesOf('hello world')) });
    expect(await paths()).toEqual([`flights/files/${file.id}`]);
    const reader = storage.files.open(file);
    expect(await reader.read(6, 5)).toEqual(bytesOf('world'));
    expect(await reader.read(6, 500)).toEqual(bytesOf('world'));
    expect(await reader.read(11, 5)).toHaveLength(0);
  });

  it('leave nothing when aborted', async () => {
    const { storage, paths } = setUp();
    const writer = await storage.files.create();
    await writer.append(bytesOf('x'));
    await writer.abort();
    await writer.abort();
    expect(await paths()).toEqual([]);
  });

  it('have ids that sort by time and tell time and generation', async () => {
    const { storage, clock } = setUp();
    const first = (await storage.files.create()).id;
    clock.advance(1);
    const second = (await storage.files.create()).id;
    expect([second, first].sort()).toEqual([first, second]);
    expect(fileOrigin(second)).toMatchObject({ mintedMs: 1_700_000_000_001, generation: 3 });
    expect(fileOrigin('whatever')).toBeUndefined();
  });

  it('go when discarded by their maker', async () => {
    const { storage, paths } = setUp();
    const keep = await (await storage.files.create()).seal();
    const drop = await (await storage.files.create()).seal();
    storage.files.discard([drop]);
    await storage.close();
    expect(await paths()).toEqual([`flights/files/${keep.id}`]);
    expect(storage.reaper.stats).toEqual({ removed: 1, failed: 0, refused: 0 });
  });

  it('cannot be discarded by another process, be it of the same generation', async () => {
    const { storage, open, paths } = setUp();
    const file = await (await storage.files.create()).seal();
    expect(() => open(2).files.discard([file])).toThrow(file.id);
    expect(await paths()).toHaveLength(1);
  });

  it('may be made by others under a delegation: they are the files of who gave it, and of nobody else', async () => {
    const { storage, delegate, paths, write } = setUp();
    const delegation = storage.files.delegate();
    const other = storage.files.delegate();
    const [one, two] = [delegate(2, delegation), delegate(3, delegation)];
    const files = [await write(one), await write(one), await write(two)];
    const [foreign, own] = [await write(delegate(4, other)), await write(storage)];
    expect(new Set([...files, foreign, own].map((file) => file.id)).size).toBe(5);
    expect(files.every((file) => fileOrigin(file.id)?.generation === 3)).toBe(true);
    expect(files.map((file) => [storage, one, two].map(({ files: store }) => store.made(file)))).toEqual([
      [true, true, false],
      [true, true, false],
      [true, false, true],
    ]);
    expect(await storage.files.discardDelegated(delegation, files.slice(1, 2))).toBe(2);
    expect(await paths()).toEqual([files[1], foreign, own].map((file) => `flights/files/${file?.id}`).sort());
    storage.files.discard(files.slice(1, 2));
    expect(() => two.files.discard(files.slice(1, 2))).toThrow('was not made here');
    await storage.reaper.drain();
    expect(await paths()).toHaveLength(2);
    await expect(delegate(5, other).files.discardDelegated(delegation, [])).rejects.toThrow('was not given here');
  });

  it('say so when they are gone or cut off', async () => {
    const { storage, dfs } = setUp();
    const writer = await storage.files.create();
    await writer.append(bytesOf('0123456789'));
    const file = await writer.seal();
    const path = `flights/files/${file.id}`;
    await dfs.put(path, bytesOf('01234'));
    await expect(storage.files.open(file).read(3, 5)).rejects.toMatchObject({ code: 'ufs-corrupt', details: { path } });
    await dfs.remove(path);
    await expect(storage.files.open(file).read(3, 5)).rejects.toMatchObject({ code: 'ufs-missing', details: { path } });
  });
});

describe('a holder', () => {
  const file = { id: 'f', sizeBytes: 1, crc32: 2 };

  it('keeps files and value, and may be written again with the same content only', async () => {
    const { storage } = setUp();
    const path = storage.namespace.snapshotPath({ checkpoint: 7, operator: 'a/b', subtask: 0, generation: 3 });
    const holder = { files: [file], value: { levels: [['f']], 3: null }, generation: 3 };
    await storage.holders.put(path, holder);
    await storage.holders.put(path, holder);
    expect(await storage.holders.read(path)).toEqual(holder);
    expect(await storage.holders.exists(path)).toBe(true);
    await expect(storage.holders.put(path, { ...holder, files: [] })).rejects.toMatchObject({
      code: 'ufs-holder-taken',
      details: { path },
    });
    expect(await storage.holders.read(path)).toEqual(holder);
  });

  it('says so when it is missing', async () => {
    const { storage } = setUp();
    await expect(storage.holders.read('flights/holders/x')).rejects.toMatchObject({ code: 'ufs-missing' });
    expect(await storage.holders.exists('flights/holders/x')).toBe(false);
  });

  it('is refused when a single bit or its end is lost', async () => {
    const { storage, dfs } = setUp();
    const path = 'flights/holders/x';
    await storage.holders.put(path, { files: [file], value: { text: 'ünï' }, generation: 1 });
    const whole = (await dfs.readAll(path)) as Uint8Array;
    for (let i = 0; i < whole.length; i++) {
      const damaged = whole.slice();
      damaged[i] = (damaged[i] as number) ^ 0x04;
      await dfs.put(path, damaged);
      await expect(storage.holders.read(path)).rejects.toMatchObject({ code: 'ufs-corrupt', details: { path } });
      await dfs.put(path, whole.slice(0, i));
      await expect(storage.holders.read(path)).rejects.toMatchObject({ code: 'ufs-corrupt' });
    }
  });
});

describe('the namespace of a job', () => {
  const { namespace } = setUp().storage;

  it('finds round and generation of its objects', () => {
    const name = { checkpoint: 12, operator: 'join-2 g5/ü', subtask: 4, generation: 9 };
    expect(namespace.roundOf(namespace.snapshotPath(name))).toEqual({ checkpoint: 12, generation: 9 });
    expect(namespace.roundOf(namespace.checkpointPath(12, 9))).toEqual({ checkpoint: 12, generation: 9 });
    expect(namespace.roundOf(namespace.filePath('x'))).toBeUndefined();
    expect(namespace.roundOf('flights/snapshots/12/other')).toBeUndefined();
    expect(namespace.roundOf('flights2/checkpoints/12-g9.json')).toBeUndefined();
  });
});
