import { MemoryDfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { SeededRandom } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import { Reaper } from './reaper.ts';

async function setUp(options: { queueMax?: number } = {}) {
  const clock = new ManualClock();
  const memory = new MemoryDfs(clock);
  const faulty = new FaultyDfs(memory);
  const paths = Array.from({ length: 20 }, (_, i) => `f/${i}`);
  for (const path of paths) await memory.put(path, new Uint8Array(1));
  const random = new SeededRandom(1);
  const reaper = new Reaper({ dfs: faulty, clock, random, telemetry: noTelemetry, ...options });
  const left = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const entry of memory.list('')) found.push(entry.path);
    return found;
  };
  return { clock, faulty, paths, reaper, left };
}

describe('the reaper', () => {
  it('removes in the background, a few at a time, and drain waits for the last', async () => {
    const { clock, faulty, paths, reaper, left } = await setUp();
    const stall = faulty.stallWhen(() => true);
    reaper.discard(paths);
    await stall.reached;
    expect(faulty.calls).toBe(4);
    expect(await left()).toHaveLength(20);
    stall.release();
    await drive(clock, reaper.drain());
    expect(await left()).toEqual([]);
    expect(reaper.stats).toEqual({ removed: 20, failed: 0, refused: 0 });
  });

  it('tries again what fails, counts what it gives up, and throws nothing at those who discard', async () => {
    const { clock, faulty, paths, reaper, left } = await setUp();
    faulty.failWhen((call) => call.path === 'f/3', 'before');
    faulty.failWhen((call) => call.path === 'f/4', 'before', { times: 2 });
    faulty.failWhen((call) => call.path === 'f/5', 'after', { times: 1 });
    reaper.discard(paths);
    await drive(clock, reaper.drain());
    expect(await left()).toEqual(['f/3']);
    expect(reaper.stats).toEqual({ removed: 19, failed: 1, refused: 0 });
  });

  it('tells what was removed and what not when it is waited for', async () => {
    const { clock, faulty, paths, reaper } = await setUp();
    faulty.failWhen((call) => call.path === 'f/3', 'before');
    const { removed, failed } = await drive(clock, reaper.removeNow([...paths, 'never/was']));
    expect(failed).toEqual(['f/3']);
    expect(removed).toHaveLength(20);
  });

  it('keeps a bounded queue and leaves the rest to the sweep', async () => {
    const { clock, paths, reaper, left } = await setUp({ queueMax: 5 });
    reaper.discard(paths);
    await drive(clock, reaper.drain());
    expect(await left()).toHaveLength(15);
    expect(reaper.stats).toEqual({ removed: 5, failed: 0, refused: 15 });
  });

  it('takes nothing after it was closed', async () => {
    const { clock, paths, reaper, left } = await setUp();
    reaper.discard(paths.slice(0, 10));
    await drive(clock, reaper.close());
    reaper.discard(paths);
    await drive(clock, reaper.close());
    expect(await left()).toHaveLength(10);
    expect(reaper.stats).toEqual({ removed: 10, failed: 0, refused: 20 });
  });
});
