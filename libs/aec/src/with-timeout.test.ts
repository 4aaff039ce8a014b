import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, it } from 'vitest';
import { withTimeout } from './with-timeout.ts';

describe('a call to an external service', () => {
  it('gives its result in time and leaves no timer behind', async () => {
    const clock = new ManualClock();
    expect(await withTimeout(Promise.resolve('answer'), { timeoutMs: 10, clock })).toBe('answer');
    await expect(withTimeout(Promise.reject(new Error('no')), { timeoutMs: 10, clock })).rejects.toThrow('no');
    expect(clock.pendingTimers).toBe(0);
  });

  it('that takes too long is a named timeout; its late result or failure is ignored', async () => {
    for (const late of ['resolve', 'reject'] as const) {
      const clock = new ManualClock();
      const service = Promise.withResolvers<string>();
      const result = withTimeout(service.promise, { timeoutMs: 10, clock, what: 'the price service' });
      clock.advance(9);
      clock.advance(1);
      if (late === 'resolve') service.resolve('late');
      else service.reject(new Error('late'));
      await expect(result).rejects.toMatchObject({
        code: 'aec-timeout',
        kind: 'retry',
        message: 'the price service took longer than 10 ms',
      });
    }
  });

  it('that takes too long may have another result, or another error', async () => {
    const clock = new ManualClock();
    const never = new Promise<string>(() => undefined);
    const other = withTimeout(never, { timeoutMs: 10, clock, onTimeout: () => 'unknown' });
    const failed = withTimeout(never, {
      timeoutMs: 10,
      clock,
      onTimeout() {
        throw new Error('mine');
      },
    });
    clock.advance(10);
    expect(await other).toBe('unknown');
    await expect(failed).rejects.toThrow('mine');
  });

  it('is told to stop, and what it says to that is ignored', async () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const service = new Promise<string>((_resolve, reject) => {
      abort.signal.addEventListener('abort', () => reject(new Error('aborted')));
    });
    const result = withTimeout(service, { timeoutMs: 10, clock, abort });
    clock.advance(10);
    await expect(result).rejects.toMatchObject({ code: 'aec-timeout' });
    expect(abort.signal.aborted).toBe(true);
  });
});
