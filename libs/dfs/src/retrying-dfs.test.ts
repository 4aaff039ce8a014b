import { MillraceError, SeededRandom } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { describe, expect, it } from 'vitest';
import { MemoryDfs } from './memory-dfs.ts';
import { RetryingDfs } from './retrying-dfs.ts';
import { FaultyDfs } from './testing/faulty-dfs.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const any = (): boolean => true;

function setUp() {
  const clock = new ManualClock();
  const memory = new MemoryDfs(clock);
  const faulty = new FaultyDfs(memory);
  const retried: string[] = [];
  const dfs = new RetryingDfs(faulty, {
    clock,
    random: new SeededRandom(1),
    attemptsMax: 4,
    timeoutMs: 1_000,
    onRetry: (operation) => retried.push(operation),
  });
  return { clock, memory, faulty, dfs, retried };
}

describe('a file system with retries', () => {
  it('gets over failures that pass, with growing pauses, and tells of each', async () => {
    const { clock, faulty, dfs, retried } = setUp();
    faulty.failWhen(any, 'before', { times: 3 });
    await drive(clock, dfs.put('a', bytesOf('x')));
    expect(retried).toEqual(['put a', 'put a', 'put a']);
    expect(clock.nowMs()).toBeGreaterThan(0);
    expect(clock.nowMs()).toBeLessThan(50 + 100 + 200);
  });

  it('gives up after a bounded number of attempts with the last failure', async () => {
    const { clock, faulty, dfs } = setUp();
    faulty.failWhen(any, 'before');
    await expect(drive(clock, dfs.readAll('a'))).rejects.toMatchObject({ code: 'dfs-unavailable', kind: 'retry' });
    expect(faulty.calls).toBe(4);
  });

  it('does not repeat what cannot pass', async () => {
    const { clock, faulty, dfs } = setUp();
    faulty.failWhen(any, 'before', { error: new MillraceError('dfs-no-space', 'full') });
    await expect(drive(clock, dfs.put('a', bytesOf('x')))).rejects.toMatchObject({ code: 'dfs-no-space' });
    await expect(drive(clock, dfs.read('missing', 0, 1))).rejects.toMatchObject({ code: 'dfs-no-space' });
    expect(faulty.calls).toBe(2);
  });

  it('takes no answer within the time limit as a failure that may pass', async () => {
    const { clock, faulty, dfs, memory } = setUp();
    await memory.put('a', bytesOf('x'));
    const stall = faulty.stallWhen((call) => call.number === 1);
    expect(await drive(clock, dfs.readAll('a'))).toEqual(bytesOf('x'));
    expect(clock.nowMs()).toBeGreaterThanOrEqual(1_000);
    stall.release();
  });

  it('reads into lent memory once: an attempt that was given up may still write to it', async () => {
    const { clock, memory } = setUp();
    await memory.put('a', bytesOf('x'));
    const lent: Array<Uint8Array | undefined> = [];
    const slow = Object.assign(Object.create(memory) as MemoryDfs, {
      read: (path: string, offset: number, length: number, _parent?: string, into?: Uint8Array) => {
        lent.push(into);
        return lent.length === 1 ? new Promise<Uint8Array>(() => undefined) : memory.read(path, offset, length);
      },
    });
    const dfs = new RetryingDfs(slow, { clock, random: new SeededRandom(1), attemptsMax: 2, timeoutMs: 100 });
    const into = new Uint8Array(4);
    expect(await drive(clock, dfs.read('a', 0, 1, undefined, into))).toEqual(bytesOf('x'));
    expect(lent).toEqual([into, undefined]);
  });

  it('recognises its own earlier success when the answer of a putIfAbsent was lost', async () => {
    const { clock, faulty, dfs } = setUp();
    faulty.failCall(1, 'after');
    expect(await drive(clock, dfs.putIfAbsent('a', bytesOf('mine')))).toBe(true);
  });

  it('does not take the success of another for its own', async () => {
    const { clock, faulty, dfs, memory } = setUp();
    await memory.put('a', bytesOf('theirs'));
    faulty.failCall(1, 'before');
    expect(await drive(clock, dfs.putIfAbsent('a', bytesOf('mine')))).toBe(false);
    expect(await drive(clock, dfs.putIfAbsent('a', bytesOf('theirs')))).toBe(false);
  });

  it('goes on with a listing behind what was already given', async () => {
    const { clock, memory, dfs, faulty } = setUp();
    for (let i = 0; i < 5; i++) await memory.put(`l/${i}`, bytesOf('x'));
    faulty.failWhen((call) => call.operation === 'list', 'after', { times: 2 });
    const found: string[] = [];
    await drive(
      clock,
      (async () => {
        for await (const entry of dfs.list('l/')) found.push(entry.path);
      })(),
    );
    expect(found).toEqual(['l/0', 'l/1', 'l/2', 'l/3', 'l/4']);
  });

  it('never repeats part of a writer, so nothing is written twice', async () => {
    const { clock, dfs, faulty, memory } = setUp();
    const writer = await drive(clock, dfs.createWriter('w'));
    await drive(clock, writer.append(bytesOf('one')));
    faulty.failWhen((call) => call.operation === 'append', 'after', { times: 1 });
    await expect(drive(clock, writer.append(bytesOf('two')))).rejects.toMatchObject({ kind: 'retry' });
    await drive(clock, writer.abort());
    expect(await memory.readAll('w')).toBeUndefined();
  });
});
