import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, MillraceError, systemRandom as random } from '@millrace/kernel';
import type { AttemptPlan } from '@millrace/proto';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { codeHash } from '../jobs/code-hash.ts';
import { JobRegistry } from '../jobs/job-registry.ts';
import { AttemptRegistry } from '../rpc/attempt-registry.ts';
import type { AttemptCalls } from '../rpc/index.ts';
import { slotBudget, slotMemoryBytesMin } from '../slots/slot-budget.ts';
import type { StateBackend, StateServiceAccess } from '../slots/slot-protocol.ts';
import { SlotWorkers } from '../slots/slot-workers.ts';
import type { AttemptHandle } from '../temporal/attempt-host.ts';
import { Attempts } from './attempts.ts';

const testdata = join(import.meta.dirname, '..', 'testdata');
const module = join(testdata, 'sums-job.ts');
const context = { parent: undefined, signal: new AbortController().signal };

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-attempt-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A runner without Temporal and gRPC, and the control plane's part played by hand. */
class Bench {
  readonly registry = new AttemptRegistry('r1');
  readonly attempts: Attempts;
  readonly dfs: Awaited<ReturnType<typeof openDfs>>;
  #checkpoint = 0;

  private constructor(
    dfs: Awaited<ReturnType<typeof openDfs>>,
    dfsUri: string,
    state: { backend: StateBackend; stateService?: StateServiceAccess | undefined },
  ) {
    this.dfs = dfs;
    const budget = slotBudget(slotMemoryBytesMin);
    const { workingSetBytes } = budget;
    this.attempts = new Attempts({
      jobs: new JobRegistry([testdata], testdata, telemetry.log),
      dfs,
      dfsUri,
      ...state,
      budget,
      workers: new SlotWorkers({ budget, warmMax: 4, clock }),
      slot: { inFlightLimit: 100, workingSetBytes, frameBytes: 4096, frameDelayMs: 2, channelWindowBytes: 16_384 },
      clock,
      random,
      telemetry,
      register: (attempt) => this.registry.register(attempt),
    });
  }

  static async open(backend: StateBackend, address?: string): Promise<Bench> {
    const stateService = address === undefined ? undefined : { instances: [{ name: 'only', address }] };
    const dfsUri = join(directory, 'dfs');
    return new Bench(await openDfs(dfsUri, { clock, random, telemetry }), dfsUri, { backend, stateService });
  }

  async plan(generation: number, parallelism: number, more: Partial<AttemptPlan> = {}): Promise<AttemptPlan> {
    const slot = { runnerId: 'r1', address: '127.0.0.1:1', lease: 'x', leaseMs: 1000 };
    return {
      id: 'sums',
      job: 'sums',
      generation,
      codeHash: await codeHash(module),
      parallelism,
      maxParallelism: 16,
      options: { records: 4000, recordsPerSecond: 6000, output: join(directory, 'out') },
      slots: Array.from({ length: parallelism }, () => slot),
      restoreFrom: null,
      checkpointLoopId: 'loop',
      ...more,
    };
  }

  calls(generation: number): AttemptCalls {
    return this.registry.find({ job: 'sums', generation: BigInt(generation), runnerId: 'r1' }).calls;
  }

  /** One round, as the control plane does it; resolves to the checkpoint's path and whether it was the last. */
  async round(plan: AttemptPlan): Promise<{ path: string; last: boolean }> {
    const checkpoint = ++this.#checkpoint;
    const calls = this.calls(plan.generation);
    await calls.injectBarrier({ checkpoint, stop: false }, context);
    const slots = JSON.parse(JSON.stringify(await calls.awaitDrain(checkpoint, context))) as Array<{ ended: boolean }>;
    const path = `sums/checkpoints/${checkpoint}-g${plan.generation}.json`;
    const contents = { version: 1, ...plan, checkpoint, slots };
    await this.dfs.put(path, new TextEncoder().encode(JSON.stringify(contents)));
    const last = slots.every((slot) => slot.ended);
    await calls.completeCheckpoint(checkpoint, last, context);
    return { path, last };
  }

  async finish(plan: AttemptPlan, handle: AttemptHandle): Promise<void> {
    await Promise.race([handle.inputsEnded, handle.done]);
    const { last } = await this.round(plan);
    if (!last) throw new Error('the inputs have ended, and the round was not the last');
    await handle.done;
  }
}

/** Largest count by key, and how many results there are; each published file is read. */
function published(): { results: number; sums: Record<string, number> } {
  const output = join(directory, 'out');
  const files = readdirSync(output).filter((name) => name.endsWith('.jsonl'));
  const lines = files.flatMap((name) => readFileSync(join(output, name), 'utf8').trim().split('\n'));
  const counts: Record<string, number> = {};
  const sums: Record<string, number> = {};
  for (const line of lines.filter((one) => one !== '')) {
    const { key, count, sum } = JSON.parse(line) as { key: number; count: number; sum: number };
    if (count > (counts[key] ?? 0)) {
      counts[key] = count;
      sums[key] = sum;
    }
  }
  return { results: lines.length, sums };
}

function expectedSums(records: number): Record<string, number> {
  const sums: Record<string, number> = {};
  for (let n = 0; n < records; n++) sums[n % 10] = (sums[n % 10] ?? 0) + n;
  return sums;
}

const services: ChildProcess[] = [];
afterEach(() => {
  for (const service of services.splice(0)) service.kill('SIGKILL');
});

/** A state-service process on the bench's file system. */
async function startStateService(): Promise<{ process: ChildProcess; address: string }> {
  const main = resolve(import.meta.dirname, '../../../state-service/src/main.ts');
  const env = { ...process.env, MILLRACE_STATE: join(directory, 'dfs') };
  const child = spawn(process.execPath, [main, '--port', '0'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  services.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { process: child, address: (JSON.parse(line.toString()) as { address: string }).address };
}

async function untilStarted(bench: Bench, generation: number): Promise<void> {
  for (;;) {
    try {
      const stats = await bench.calls(generation).status(context);
      if (stats.some((slot) => slot.recordsIn > 0)) return;
    } catch (error) {
      if (MillraceError.from(error).code !== 'attempt-unknown') throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('an attempt in worker threads', { timeout: 90_000 }, () => {
  it('goes on exactly where the checkpoint was, at another parallelism, after it was killed', async () => {
    const bench = await Bench.open('lsm');
    const first = await bench.plan(1, 2);
    const handle = bench.attempts.start(first, 'r1');
    await Promise.race([untilStarted(bench, 1), handle.done]);
    const { path, last } = await bench.round(first);
    expect(last).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await handle.cancel(new MillraceError('cancelled', 'killed by the test'));
    await expect(handle.done).rejects.toMatchObject({ kind: 'cancelled' });

    const second = await bench.plan(2, 3, { restoreFrom: path });
    await bench.finish(second, bench.attempts.start(second, 'r1'));
    expect(published()).toEqual({ results: 4000, sums: expectedSums(4000) });
  });

  it('goes on exactly from an unaligned checkpoint, aligned and at another parallelism', async () => {
    const bench = await Bench.open('lsm');
    const first = await bench.plan(1, 2, { overtakeAfterMs: 0 });
    const handle = bench.attempts.start(first, 'r1');
    await Promise.race([untilStarted(bench, 1), handle.done]);
    const { path } = await bench.round(first);
    await handle.cancel(new MillraceError('cancelled', 'killed by the test'));
    await handle.done.catch(() => undefined);
    const stored = new TextDecoder().decode(await bench.dfs.readAll(path));
    expect(stored).toContain('"inFlight":{"channels":[{"place":"in"');

    const second = await bench.plan(2, 3, { restoreFrom: path });
    await bench.finish(second, bench.attempts.start(second, 'r1'));
    expect(published()).toEqual({ results: 4000, sums: expectedSums(4000) });
  });

  it('reads nothing twice and forgets no sum when an operator has another uid than in the checkpoint: refused', async () => {
    const bench = await Bench.open('memory');
    const path = 'sums/checkpoints/1-g1.json';
    const part = (operator: string, list?: readonly unknown[]): unknown => ({ operator, subtask: 0, list });
    const operators = [part('numbers-v1', [1]), part('check'), part('sum'), part('files', [])];
    const contents = { version: 1, id: 'sums', checkpoint: 1, maxParallelism: 16, slots: [{ subtask: 0, operators }] };
    await bench.dfs.put(path, new TextEncoder().encode(JSON.stringify(contents)));
    const refused = bench.attempts.start(await bench.plan(2, 1, { restoreFrom: path }), 'r1');
    await expect(refused.done).rejects.toMatchObject({
      code: 'state-incompatible',
      details: { dropped: 'numbers-v1', fresh: 'numbers' },
    });
    const allowed = await bench.plan(3, 1, { restoreFrom: path, allowDroppedState: true });
    await bench.finish(allowed, bench.attempts.start(allowed, 'r1'));
    expect(published()).toEqual({ results: 4000, sums: expectedSums(4000) });
  });

  it('keeps its state in a state-service: goes on exactly where the checkpoint was after kill -9 of the service', async () => {
    const service = await startStateService();
    const bench = await Bench.open('remote', service.address);
    const first = await bench.plan(1, 2);
    const handle = bench.attempts.start(first, 'r1');
    await Promise.race([untilStarted(bench, 1), handle.done]);
    const { path, last } = await bench.round(first);
    expect(last).toBe(false);
    service.process.kill('SIGKILL');
    // State that is at hand is not asked for: the loss shows at the next call of the table.
    await expect(bench.round(first)).rejects.toMatchObject({ kind: 'retry' });
    await expect(handle.done).rejects.toMatchObject({ code: 'state-remote-broken', kind: 'retry' });

    const again = await Bench.open('remote', (await startStateService()).address);
    const second = await again.plan(2, 3, { restoreFrom: path });
    await again.finish(second, again.attempts.start(second, 'r1'));
    expect(published()).toEqual({ results: 4000, sums: expectedSums(4000) });
  });

  it('ends with the error of the handler that failed, and stops the other slots', async () => {
    const bench = await Bench.open('memory');
    const options = { records: 100_000, recordsPerSecond: 5000, output: join(directory, 'out'), failAt: 700 };
    const handle = bench.attempts.start(await bench.plan(1, 2, { options }), 'r1');
    await expect(handle.done).rejects.toMatchObject({
      code: 'operator-failed',
      message: expect.stringContaining('no more than 700'),
      details: { operator: 'check' },
    });
  });

  it('ends when the thread of a slot dies, also while another slot does not give its thread back', async () => {
    const bench = await Bench.open('memory');
    const options = { records: 5000, recordsPerSecond: 5000, output: join(directory, 'out'), exitAt: 700, spinAt: 500 };
    const handle = bench.attempts.start(await bench.plan(1, 2, { options }), 'r1');
    await expect(handle.done).rejects.toMatchObject({ code: 'slot-lost', kind: 'retry' });
  });

  it('ends with the broken stream it was stopped for, though a slot does not give its thread back', async () => {
    const bench = await Bench.open('memory');
    const options = { records: 5000, recordsPerSecond: 5000, output: join(directory, 'out'), spinAt: 2500 };
    const handle = bench.attempts.start(await bench.plan(1, 1, { options }), 'r1');
    await vi.waitFor(() => expect(handle.progress().recordsIn).toBeGreaterThan(0), 30_000);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await handle.cancel(new MillraceError('exchange-broken', 'the stream broke'));
    await expect(handle.done).rejects.toMatchObject({ code: 'exchange-broken' });
  });

  it('a newer attempt of the job takes over, an older one is refused', async () => {
    const bench = await Bench.open('memory');
    const older = bench.attempts.start(await bench.plan(1, 1), 'r1');
    await Promise.race([untilStarted(bench, 1), older.done]);
    const options = { records: 100, recordsPerSecond: 10_000, output: join(directory, 'out2') };
    const plan = await bench.plan(2, 1, { options });
    const newer = bench.attempts.start(plan, 'r1');
    await expect(older.done).rejects.toMatchObject({ kind: 'fenced' });
    const refused = bench.attempts.start(await bench.plan(1, 1), 'r1');
    await expect(refused.done).rejects.toMatchObject({ code: 'attempt-fenced' });
    await bench.finish(plan, newer);
  });

  it('refuses other code than the attempt was planned with, and jobs that it does not know', async () => {
    const bench = await Bench.open('memory');
    const other = bench.attempts.start(await bench.plan(1, 1, { codeHash: 'other' }), 'r1');
    await expect(other.done).rejects.toMatchObject({ code: 'job-code-differs' });
    await expect(bench.attempts.describe('summs', {})).rejects.toThrow(/no job 'summs' here; known are: sums/);
  });

  it('says what a job consists of, and refuses bad options by their path', async () => {
    const bench = await Bench.open('memory');
    const description = await bench.attempts.describe('sums', { records: 1, recordsPerSecond: 1, output: 'x' });
    expect(description.operators.map((operator) => operator.uid)).toEqual(['numbers', 'check', 'sum', 'files']);
    await expect(bench.attempts.describe('sums', { records: 'many' })).rejects.toMatchObject({ code: 'job-options' });
  });
});
