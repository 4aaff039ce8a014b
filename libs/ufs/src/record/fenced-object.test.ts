import { MemoryDfs } from '@millrace/dfs';
import { SeededRandom, systemClock } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import { Reaper } from '../reaper.ts';
import { FencedObject } from './fenced-object.ts';

interface Value {
  readonly generation: number;
  readonly items: readonly string[];
}

const random = new SeededRandom(1);

function setUp(check?: (next: Value, current: Value | undefined) => void) {
  const dfs = new MemoryDfs(systemClock);
  const open = (): FencedObject<Value> =>
    new FencedObject<Value>({
      dfs,
      directory: 'job/record',
      clock: systemClock,
      random,
      ...(check === undefined ? {} : { check }),
    });
  const reaper = new Reaper({ dfs, clock: systemClock, random, telemetry: noTelemetry });
  const paths = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const entry of dfs.list('')) found.push(entry.path);
    return found;
  };
  return { dfs, open, reaper, paths };
}

const start = (current: Value | undefined, generation: number): Value => ({
  generation,
  items: current?.items ?? [],
});
const add =
  (item: string) =>
  (current: Value | undefined): Value => ({ generation: 0, items: [...(current?.items ?? []), item] });

describe('a fenced object', () => {
  it('does not exist before the first claim and keeps numbered versions from then on', async () => {
    const { open, paths } = setUp();
    expect(await open().latest()).toBeUndefined();
    expect((await open().claim({ claimant: 'a', change: start })).value.generation).toBe(1);
    await open().update(add('x'), { generation: 1 });
    expect((await open().latest())?.value).toEqual({ generation: 1, items: ['x'] });
    expect(await paths()).toEqual(['job/record/00000000000000000001', 'job/record/00000000000000000002']);
  });

  it('refuses every update of an older generation after a claim, as fenced, and changes nothing', async () => {
    const { open } = setUp();
    await open().claim({ claimant: 'a', change: start });
    await open().claim({ claimant: 'b' });
    await expect(open().update(add('zombie'), { generation: 1 })).rejects.toMatchObject({
      code: 'ufs-fenced',
      kind: 'fenced',
      details: { generation: 1, newest: 2 },
    });
    expect((await open().latest())?.value.items).toEqual([]);
  });

  it('fences a writer that had read before the claim and writes after it', async () => {
    const { open } = setUp();
    await open().claim({ claimant: 'a', change: start });
    let claimed: Promise<unknown> | undefined;
    let calls = 0;
    const late = open().update(
      (current) => {
        calls++;
        claimed ??= open().claim({ claimant: 'b' });
        return add('late')(current);
      },
      { generation: 1 },
    );
    // Whichever is first: both orders are legal, a lost update or one behind the claim is not.
    const outcome = await late.then(
      () => 'applied',
      (error: { code: string }) => error.code,
    );
    await claimed;
    const items = (await open().latest())?.value.items;
    expect([outcome, items]).toEqual(calls > 0 && outcome === 'applied' ? ['applied', ['late']] : ['ufs-fenced', []]);
  });

  it('gives a repeated claim of the same claimant the same generation, and another claimant the next', async () => {
    const { open } = setUp();
    const first = await open().claim({ claimant: 'run-1', change: start });
    await open().update(add('x'), { generation: first.value.generation });
    expect((await open().claim({ claimant: 'run-1', change: start })).value).toEqual({ generation: 1, items: ['x'] });
    expect((await open().claim({ claimant: 'run-2', change: start })).value.generation).toBe(2);
    expect((await open().claim({ claimant: 'run-1', change: start })).value.generation).toBe(3);
  });

  it('has every one of many concurrent updates, once', async () => {
    const { open } = setUp();
    await open().claim({ claimant: 'a', change: start });
    const names = Array.from({ length: 20 }, (_, i) => `item-${i}`);
    await Promise.all(names.map((name) => open().update(add(name), { generation: 1 })));
    expect([...((await open().latest())?.value.items ?? [])].sort()).toEqual([...names].sort());
  });

  it('writes nothing when the change returns what it was given', async () => {
    const { open, paths } = setUp();
    const { value } = await open().claim({ claimant: 'a', change: start });
    const same = await open().update((current) => current as Value, { generation: 1 });
    expect(same.value).toEqual(value);
    expect(await paths()).toHaveLength(1);
  });

  it('writes nothing when its invariants do not hold', async () => {
    const { open, paths } = setUp((next, current) => {
      if (next.items.length < (current?.items.length ?? 0)) throw new Error('items went away');
    });
    await open().claim({ claimant: 'a', change: start });
    await open().update(add('x'), { generation: 1 });
    await expect(open().update(() => ({ generation: 1, items: [] }), { generation: 1 })).rejects.toThrow('went away');
    expect(await paths()).toHaveLength(2);
  });

  it('keeps the newest versions at a collection, and a marker that outlives them', async () => {
    const { open, reaper, paths } = setUp();
    await open().claim({ claimant: 'a', change: start });
    for (let i = 0; i < 9; i++) await open().update(add(`${i}`), { generation: 1 });
    expect(await open().collect(3, reaper)).toBe(7);
    expect(await open().collect(3, reaper)).toBe(0);
    expect(await paths()).toEqual([
      'job/record/00000000000000000008',
      'job/record/00000000000000000009',
      'job/record/00000000000000000010',
      'job/record/gc-00000000000000000007',
    ]);
    expect((await open().latest())?.number).toBe(10);
  });

  it('names the path when a version is damaged', async () => {
    const { dfs, open } = setUp();
    await open().claim({ claimant: 'a', change: start });
    const path = 'job/record/00000000000000000001';
    const bytes = (await dfs.readAll(path)) as Uint8Array;
    bytes[bytes.length - 4] = (bytes[bytes.length - 4] as number) ^ 1;
    await dfs.put(path, bytes);
    await expect(open().latest()).rejects.toMatchObject({ code: 'ufs-corrupt', details: { path } });
  });
});
