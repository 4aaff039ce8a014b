import { drive, ManualClock } from '@millrace/kernel/testing';
import { describe, expect, it } from 'vitest';
import { RateLimit } from './rate-limit.ts';

async function timeOf(clock: ManualClock, limit: RateLimit, sizes: readonly number[]): Promise<number> {
  const startMs = clock.nowMs();
  await drive(
    clock,
    (async () => {
      for (const size of sizes) await limit.take(size);
    })(),
  );
  return clock.nowMs() - startMs;
}

describe('the rate limit of a client', () => {
  it('lets a second’s worth of requests through at once and then holds to the rate', async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ clock, requestsPerSecond: 10 });
    expect(
      await timeOf(
        clock,
        limit,
        Array.from({ length: 10 }, () => 0),
      ),
    ).toBe(0);
    expect(
      await timeOf(
        clock,
        limit,
        Array.from({ length: 50 }, () => 0),
      ),
    ).toBeGreaterThanOrEqual(4_900);
    expect(limit.waitedMs).toBeGreaterThan(4_000);
  });

  it('holds to the rate of bytes, and what is larger than a burst passes and is paid for by those behind it', async () => {
    const clock = new ManualClock();
    const limit = new RateLimit({ clock, bytesPerSecond: 1000 });
    expect(await timeOf(clock, limit, [5000])).toBe(0);
    expect(await timeOf(clock, limit, [1])).toBe(4000);
  });

  it('does not hold anybody when there is none', () => {
    const limit = new RateLimit({ clock: new ManualClock() });
    const waits = Array.from({ length: 10_000 }, () => limit.take(1 << 30));
    expect(waits.filter((wait) => wait !== undefined)).toEqual([]);
  });

  it('refuses, as something that may pass, who would wait too long', () => {
    const limit = new RateLimit({ clock: new ManualClock(), bytesPerSecond: 1, waitMaxMs: 10_000 });
    expect(limit.take(100)).toBeUndefined();
    expect(() => limit.take(1)).toThrow(expect.objectContaining({ code: 'dfs-throttled', kind: 'retry' }));
  });
});
