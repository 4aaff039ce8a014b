import { systemClock } from '@millrace/kernel';
import { describe, expect, it } from 'vitest';
import { MemoryDfs } from '../memory-dfs.ts';
import { dfsConformance } from './conformance.ts';
import { FaultyDfs } from './faulty-dfs.ts';

const bytes = new TextEncoder().encode('x');

function setUp() {
  const memory = new MemoryDfs(systemClock);
  return { memory, dfs: new FaultyDfs(memory) };
}

async function paths(dfs: FaultyDfs): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of dfs.list('')) found.push(entry.path);
  return found;
}

dfsConformance('FaultyDfs without faults', async () => ({ dfs: setUp().dfs, cleanup: () => Promise.resolve() }));

describe('a faulty file system', () => {
  it('fails before the effect or after it, at the call it was told', async () => {
    const { memory, dfs } = setUp();
    dfs.failCall(2, 'before');
    dfs.failCall(3, 'after');
    await dfs.put('1', bytes);
    await expect(dfs.put('2', bytes)).rejects.toMatchObject({ kind: 'retry' });
    await expect(dfs.put('3', bytes)).rejects.toMatchObject({ kind: 'retry' });
    await dfs.put('4', bytes);
    expect([await memory.readAll('2'), await memory.readAll('3')]).toEqual([undefined, bytes]);
    expect(dfs.stats).toMatchObject({ errors: 2, bytesWritten: 3 });
  });

  it('holds a call until it is released', async () => {
    const { memory, dfs } = setUp();
    const stall = dfs.stallWhen((call) => call.path === 'slow');
    const put = dfs.put('slow', bytes);
    expect(await stall.reached).toMatchObject({ operation: 'put', path: 'slow' });
    await dfs.put('quick', bytes);
    expect(await memory.readAll('slow')).toBeUndefined();
    stall.release();
    await put;
    expect(await memory.readAll('slow')).toEqual(bytes);
  });

  it('does nothing any more after a crash', async () => {
    const { memory, dfs } = setUp();
    dfs.crashAt(2, 'after');
    await dfs.put('1', bytes);
    await expect(dfs.put('2', bytes)).rejects.toThrow('injected');
    await expect(dfs.put('3', bytes)).rejects.toThrow('injected');
    expect([await memory.readAll('2'), await memory.readAll('3')]).toEqual([bytes, undefined]);
  });

  it('lists late when told to', async () => {
    const { dfs } = setUp();
    await dfs.put('old', bytes);
    dfs.lagLists(2);
    await dfs.stat('x');
    await dfs.stat('x');
    await dfs.put('new', bytes);
    expect(await paths(dfs)).toEqual(['old']);
    await dfs.stat('x');
    expect(await paths(dfs)).toEqual(['new', 'old']);
  });
});
