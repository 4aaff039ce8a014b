import { SeededRandom, systemClock } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { describe, expect, it } from 'vitest';
import { MemoryDfs } from '../memory-dfs.ts';
import { RetryingDfs } from '../retrying-dfs.ts';
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

  it('is as far away as told, in latency and in bandwidth that all requests share', async () => {
    const clock = new ManualClock();
    const dfs = new FaultyDfs(new MemoryDfs(clock), { clock });
    dfs.slowDown({ latencyMs: 23, bytesPerSecond: 1000 });
    await drive(clock, dfs.stat('a'));
    expect(clock.nowMs()).toBe(23);
    await drive(clock, Promise.all([dfs.put('a', new Uint8Array(500)), dfs.put('b', new Uint8Array(500))]));
    expect(clock.nowMs()).toBe(23 + 23 + 1000);
    await drive(clock, dfs.readAll('a'));
    expect(clock.nowMs()).toBe(23 + 23 + 1000 + 23 + 500);
    const writer = await dfs.createWriter('c');
    await drive(clock, writer.append(new Uint8Array(100)));
    await drive(clock, writer.close());
    expect(clock.nowMs()).toBe(23 + 23 + 1000 + 23 + 500 + 100 + 23);
    dfs.heal();
    await dfs.stat('a');
    expect(clock.nowMs()).toBe(23 + 23 + 1000 + 23 + 500 + 100 + 23);
  });

  it('refuses a share of requests in a storm, which retries get over', async () => {
    const clock = new ManualClock();
    const { dfs } = setUp();
    const storm = dfs.storm(0.5, new SeededRandom(1));
    const retried: string[] = [];
    const retrying = new RetryingDfs(dfs, {
      clock,
      random: new SeededRandom(2),
      attemptsMax: 20,
      onRetry: (_, error) => retried.push(error.code),
    });
    for (let i = 0; i < 50; i++) await drive(clock, retrying.put(`${i}`, bytes));
    expect(retried.length).toBeGreaterThan(10);
    expect(new Set(retried)).toEqual(new Set(['dfs-throttled']));
    storm.release();
    expect(await paths(dfs)).toHaveLength(50);
  });
});
