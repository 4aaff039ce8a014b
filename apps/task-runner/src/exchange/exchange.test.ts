import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { ClaimedSlot } from '@millrace/proto';
import { afterEach, expect, test } from 'vitest';
import type { RunnerProcessCommand, RunnerProcessReport } from './testing/runner-process.fixture.ts';
import { TestRunner } from './testing/test-runner.ts';
import type { Traffic } from './testing/traffic.ts';

const seed = Number(process.env.MILLRACE_SEED ?? 20261130);
const frames = Number(process.env.MILLRACE_CASES ?? 10);
const calm: Traffic = { seed, edges: [0, 3], frames, bytesMax: 1_000_000, windowBytes: 256 * 1024 };

const runners: TestRunner[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(runners.splice(0).map((runner) => runner.stop()));
});

async function start(...ids: string[]): Promise<{ claimed: ClaimedSlot[]; made: TestRunner[] }> {
  const made = ids.map((id) => new TestRunner(id));
  runners.push(...made);
  return { claimed: await Promise.all(made.map((runner) => runner.listen())), made };
}

const waiting = { timeout: 30_000, interval: 20 };

test(`every frame arrives once, whole and in order, within and across runners (seed ${seed})`, async () => {
  const { claimed, made } = await start('a', 'b');
  const [onA, onB] = claimed as [ClaimedSlot, ClaimedSlot];
  const slots = [onA, onB, onA, onB];
  await Promise.all(made.map((runner) => runner.deploy(slots, 1, calm)));
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBe(2);
  for (const runner of made) {
    expect(runner.of('fault')).toEqual([]);
    expect(runner.of('broken')).toEqual([]);
    expect(runner.bridge?.stats().queuedBytes).toBe(0);
  }
});

test('a runner that deploys late is waited for', async () => {
  const { claimed, made } = await start('a', 'b');
  const [a, b] = made as [TestRunner, TestRunner];
  const early = a.deploy(claimed, 1, { ...calm, frames: 5 });
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(a.broken).toBeUndefined();
  await Promise.all([early, b.deploy(claimed, 1, { ...calm, frames: 5 })]);
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBe(1);
});

test('a runner that never deploys breaks the attempt at the deadline', async () => {
  const { claimed, made } = await start('a', 'b');
  const a = made[0] as TestRunner;
  await a.deploy(claimed, 1, { ...calm, frames: 5 }, 300);
  expect(a.broken).toMatchObject({ code: 'exchange-broken', kind: 'retry' });
  await expect.poll(() => a.of('broken').length, waiting).toBe(1);
});

test('a reader that stalls bounds what its writers and both runners hold', async () => {
  const { claimed, made } = await start('a', 'b');
  const [a, b] = made as [TestRunner, TestRunner];
  const traffic = { ...calm, edges: [0], frames: 400, bytesMax: 100_000, windowBytes: 128 * 1024, stalled: [1] };
  await Promise.all(made.map((runner) => runner.deploy(claimed, 1, traffic)));
  const taken = (): number => b.bridge?.stats().bytesIn ?? 0;
  let before = -1;
  while (taken() !== before || before === 0) {
    before = taken();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(before).toBeLessThanOrEqual(128 * 1024 + 100_000);
  expect(a.bridge?.stats().queuedBytes).toBe(0);
  b.tell(1, { kind: 'read' });
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBe(1);
  expect(b.of('done')[0]?.heldBytesMax).toBeLessThanOrEqual(128 * 1024 + 100_000);
  expect([...a.of('fault'), ...b.of('fault')]).toEqual([]);
});

test('while a peer has not come, a writer queues no more than its window', async () => {
  const { claimed, made } = await start('a', 'b');
  const [a, b] = made as [TestRunner, TestRunner];
  const traffic = { ...calm, edges: [0], frames: 100, bytesMax: 50_000, windowBytes: 64 * 1024 };
  const open = a.deploy(claimed, 1, traffic);
  const queuedBytes = (): number => a.bridge?.stats().queuedBytes ?? 0;
  await expect.poll(queuedBytes, waiting).toBeGreaterThanOrEqual(64 * 1024);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const queued = queuedBytes();
  expect(queued).toBeLessThanOrEqual(64 * 1024 + 50_000);
  await Promise.all([open, b.deploy(claimed, 1, traffic)]);
  await expect.poll(() => b.of('done').length, waiting).toBe(1);
});

test('a slot that ignores its credit stops the attempt instead of filling the memory', async () => {
  const { claimed, made } = await start('a', 'b');
  const a = made[0] as TestRunner;
  const traffic = { ...calm, edges: [0], frames: 1000, bytesMax: 50_000, windowBytes: 64 * 1024 };
  void a.deploy(claimed, 1, { ...traffic, ignoredCreditBytes: 2 ** 40 });
  await expect.poll(() => a.broken, waiting).toMatchObject({ code: 'exchange-overrun', kind: 'bug' });
  expect(a.bridge?.stats().queuedBytes).toBe(0);
  await expect.poll(() => a.of('broken').map(({ code }) => code), waiting).toEqual(['exchange-overrun']);
});

test('a finished runner leaves in order and breaks nobody', async () => {
  const { claimed, made } = await start('a', 'b');
  const [a, b] = made as [TestRunner, TestRunner];
  await Promise.all(made.map((runner) => runner.deploy(claimed, 1, { ...calm, frames: 5 })));
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBe(1);
  a.tell(0, { kind: 'close' });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await a.bridge?.close();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(b.broken).toBeUndefined();
  expect(b.of('broken')).toEqual([]);
  b.tell(1, { kind: 'close' });
  await b.bridge?.close();
  expect(a.broken).toBeUndefined();
});

test('a slot that fails breaks its peers in its own and in other runners', async () => {
  const { claimed, made } = await start('a', 'b');
  const [onA, onB] = claimed as [ClaimedSlot, ClaimedSlot];
  const [a, b] = made as [TestRunner, TestRunner];
  const slots = [onA, onA, onB];
  await Promise.all(made.map((runner) => runner.deploy(slots, 1, { ...calm, frames: 5 })));
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBeGreaterThan(0);
  a.tell(0, { kind: 'close', reason: 'handler threw' });
  await expect.poll(() => a.of('broken').map(({ peer }) => peer), waiting).toContain(0);
  await expect.poll(() => b.of('broken').length, waiting).toBeGreaterThan(0);
  expect(b.broken).toMatchObject({ kind: 'retry' });
});

test('a worker thread that dies without a goodbye breaks its peers', async () => {
  const { claimed, made } = await start('a', 'b');
  const [onA, onB] = claimed as [ClaimedSlot, ClaimedSlot];
  const [a, b] = made as [TestRunner, TestRunner];
  await Promise.all(made.map((runner) => runner.deploy([onA, onA, onB], 1, { ...calm, frames: 5 })));
  for (const runner of made) await expect.poll(() => runner.of('done').length, waiting).toBeGreaterThan(0);
  await a.workers.get(0)?.terminate();
  await expect.poll(() => a.of('broken').map(({ peer }) => peer), waiting).toContain(0);
  await expect.poll(() => b.of('broken').length, waiting).toBe(2);
});

test('an attempt of an older generation is refused, and ended where it still runs', async () => {
  const { claimed, made } = await start('a', 'b');
  const [a, b] = made as [TestRunner, TestRunner];
  const traffic = { ...calm, frames: 5 };
  await Promise.all(made.map((runner) => runner.deploy(claimed, 4, traffic)));
  const oldA = a.bridge;
  void b.deploy(claimed, 5, traffic); // b runs the new attempt, a knows nothing of it
  await expect.poll(() => a.broken?.kind, waiting).toBe('fenced');
  expect(a.bridge).toBe(oldA);
  a.broken = undefined;
  await a.deploy(claimed, 4, traffic); // a zombie tries again
  expect(a.broken).toMatchObject({ code: 'attempt-fenced', kind: 'fenced' });
});

async function startChild(traffic: Traffic): Promise<{ child: ChildProcess; here: TestRunner }> {
  const child = fork(new URL('./testing/runner-process.fixture.ts', import.meta.url), { execArgv: [] });
  children.push(child);
  const { claimed, made } = await start('here');
  const [listening] = (await once(child, 'message')) as [RunnerProcessReport];
  if (listening.kind !== 'listening') throw new Error('the child did not listen');
  const slots = [...claimed, listening.claimed];
  const command: RunnerProcessCommand = { slots, traffic };
  child.send(command);
  const here = made[0] as TestRunner;
  await here.deploy(slots, 1, traffic);
  return { child, here };
}

test.each(['SIGKILL', 'SIGSTOP'] as const)('a peer process that gets %s is noticed within 3 s', async (signal) => {
  const { child, here } = await startChild({ ...calm, frames: 10 });
  await expect.poll(() => here.of('done').length, waiting).toBe(1);
  expect(here.of('fault')).toEqual([]);
  const startedMs = performance.now();
  child.kill(signal);
  await expect.poll(() => here.of('broken').length, waiting).toBe(1);
  expect(performance.now() - startedMs).toBeLessThan(3000);
  expect(here.broken).toMatchObject({ code: 'exchange-broken', kind: 'retry' });
});
