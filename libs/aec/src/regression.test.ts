/** One test per fault that users of other stream processors have met, named by what they saw. */
import { ManualClock } from '@millrace/kernel/testing';
import { expect, it } from 'vitest';
import { AsyncExecutionController } from './controller.ts';
import type { Epoch } from './epoch.ts';
import { withTimeout } from './with-timeout.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('a watermark came twice when the input went idle (FLINK-36859)', async () => {
  const out: string[] = [];
  const gate = Promise.withResolvers<void>();
  const aec = new AsyncExecutionController<string, string>({ watermarks: 'parallel', handle: () => gate.promise });
  void aec.admit('a', 'a1');
  void aec.watermark(() => out.push('watermark 10'));
  void aec.mark(() => out.push('idle'));
  void aec.mark(() => out.push('active'));
  gate.resolve();
  await aec.drain();
  void aec.mark(() => out.push('idle'));
  expect(out).toEqual(['watermark 10', 'idle', 'active', 'idle']);
});

it('the idle status overtook timers that were still working (FLINK-36892)', async () => {
  const out: string[] = [];
  const timer = Promise.withResolvers<void>();
  const aec = new AsyncExecutionController<string, string>({
    watermarks: 'parallel',
    handle: (record) => timer.promise.then(() => void out.push(record)),
  });
  void aec.watermark(
    () => out.push('watermark'),
    () => aec.derive('a', 'timer'),
  );
  void aec.mark(() => out.push('idle'));
  await settled();
  expect(out).toEqual([]);
  timer.resolve();
  await aec.drain();
  expect(out).toEqual(['timer', 'watermark', 'idle']);
});

it('a watermark left before the callbacks of its timers had finished (FLINK-36875)', async () => {
  const out: string[] = [];
  const hops = async (name: string): Promise<void> => {
    for (let i = 0; i < 3; i++) await settled();
    out.push(name);
  };
  const aec: AsyncExecutionController<string, string> = new AsyncExecutionController({
    async handle(record: string, _key: string, epoch: Epoch) {
      await hops(record);
      if (record === 'timer') aec.derive('b', 'callback of timer', epoch);
    },
  });
  await aec.watermark(
    () => out.push('watermark'),
    () => aec.derive('a', 'timer'),
  );
  expect(out).toEqual(['timer', 'callback of timer', 'watermark']);
});

it('a record spawned at the in-flight limit waited for its parent: the job hung (FLINK-37089)', async () => {
  const out: string[] = [];
  const aec: AsyncExecutionController<string, number> = new AsyncExecutionController({
    inFlightLimit: 1,
    async handle(depth: number, key: string, epoch: Epoch) {
      await settled();
      if (depth < 3) aec.derive(depth % 2 === 0 ? key : 'other', depth + 1, epoch);
      await settled();
      out.push(`${key}${depth}`);
    },
  });
  for (const key of ['a', 'b']) await aec.admit(key, 0);
  await aec.watermark(() => out.push('watermark'));
  expect(out.at(-1)).toBe('watermark');
  expect(out).toHaveLength(9);
});

it('the end of the input came while timers were working, and trailing windows were lost (FLINK-39481)', async () => {
  const out: string[] = [];
  const aec = new AsyncExecutionController<string, string>({
    watermarks: 'parallel',
    async handle(record) {
      for (let i = 0; i < 3; i++) await settled();
      out.push(record);
    },
  });
  void aec.admit('a', 'record');
  void aec.watermark(
    () => out.push('watermark +Infinity'),
    async () => {
      for (const window of ['window 1', 'window 2', 'window 3']) {
        aec.derive('a', window);
        await settled();
      }
    },
  );
  await aec.drain();
  out.push('end');
  expect(out).toEqual(['record', 'window 1', 'window 2', 'window 3', 'watermark +Infinity', 'end']);
});

it('a timeout of the user and the late answer both completed the record (FLINK-38082)', async () => {
  const clock = new ManualClock();
  const service = Promise.withResolvers<string>();
  const out: string[] = [];
  const aec = new AsyncExecutionController<string, string>({
    async handle() {
      out.push(await withTimeout(service.promise, { timeoutMs: 100, clock, onTimeout: () => 'timed out' }));
    },
  });
  void aec.admit('a', 'a1');
  void aec.admit('a', 'a2');
  clock.advance(100);
  await settled();
  expect(out).toEqual(['timed out']);
  service.resolve('late');
  await aec.drain();
  expect(out).toEqual(['timed out', 'late']);
  expect([aec.inFlight, clock.pendingTimers]).toEqual([0, 0]);
});

it('a snapshot held half of a record (FLINK-35027)', async () => {
  const left = new Map<string, number>();
  const right = new Map<string, number>();
  const add = (to: Map<string, number>, key: string): void => void to.set(key, (to.get(key) ?? 0) + 1);
  const aec = new AsyncExecutionController<string, number>({
    async handle(n, key) {
      for (let i = 0; i < n % 3; i++) await settled();
      add(left, key);
      for (let i = 0; i < n % 4; i++) await settled();
      add(right, key);
    },
  });
  for (let n = 1; n <= 200; n++) {
    await aec.admit(`key ${n % 7}`, n);
    if (n % 40 !== 0) continue;
    for (let wait = aec.drain(); wait !== undefined; wait = aec.drain()) await wait;
    expect(left).toEqual(right);
    expect([...left.values()].reduce((a, b) => a + b)).toBe(n);
  }
});
