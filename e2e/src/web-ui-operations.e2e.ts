import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, hasChromium, openBrowser, startByForm } from './support/start-form.ts';
import { eventually, registeredRounds, TestStack } from './support/test-stack.ts';
import { expectExactCounts } from './support/wordcount-result.ts';

const keys = 500;
const records = 150_000;

describe.skipIf(!hasChromium)(`operations by Temporal's start form (skipped without ${chromiumPath})`, () => {
  let run: TestStack;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    run = await TestStack.start({ runners: 2, slots: 2 });
    browser = await openBrowser();
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await run?.[Symbol.asyncDispose]();
  });

  /** Starts a workflow by the form; its result. */
  async function operate(workflowType: string, input: unknown): Promise<unknown> {
    const id = `${workflowType}-${crypto.randomUUID()}`;
    await startByForm(run, page, { id, workflowType, input: JSON.stringify(input) });
    return await run.client.temporal.workflow.getHandle(id).result();
  }

  async function parallelismOf(id: string): Promise<number> {
    return (await run.client.job(id).status()).parallelism;
  }

  test('a job is started, rescaled, saved, forked, cleaned, suspended and restored: its output is exact', async () => {
    const output = run.path('out');
    const options = { keys, records, fill: true, recordsPerSecond: 2500, output };
    const input = { job: 'wordcount', id: 'counted', parallelism: 1, checkpointIntervalMs: 500, options };
    await startByForm(run, page, { id: 'counted', workflowType: 'job', input: JSON.stringify(input) });
    const job = run.client.job('counted');
    await eventually('a checkpoint', 60_000, async () => ((await registeredRounds(job)).length > 0 ? true : undefined));

    await expectFailure('rescale', '{"job":"counted","parallelism":129}', /parallelism.*128/);
    expect(await operate('rescale', { job: 'counted', parallelism: 2 })).toMatchObject({ from: 1, to: 2 });
    expect(await parallelismOf('counted')).toBe(2);
    expect(await operate('savepoint', { job: 'counted', name: 'kept' })).toMatchObject({ name: 'kept' });
    const forked = await operate('fork', {
      job: 'counted',
      id: 'trial',
      from: 'kept',
      options: { ...options, output: run.path('trial') },
    });
    expect(forked).toMatchObject({ id: 'trial' });
    expect(await operate('stop', { job: 'trial', mode: 'suspend' })).toMatchObject({ id: 'trial' });
    expect(await operate('ttlCleanup', { job: 'counted' })).toMatchObject({ id: 'counted' });
    expect(await operate('stop', { job: 'counted', mode: 'suspend' })).toMatchObject({ id: 'counted' });
    expect(await operate('restore', { job: 'counted', parallelism: 1 })).toMatchObject({
      id: 'counted',
      parallelism: 1,
    });
    const listed = await operate('checkpoints', { job: 'counted' });
    expect(JSON.stringify(listed)).toContain('kept');
    expect(await run.client.job('counted').result()).toMatchObject({ state: 'finished' });
    expectExactCounts(output, records, keys);

    expect(await operate('release', { job: 'counted', savepoint: 'kept' })).toMatchObject({ id: 'counted' });
    expect(await operate('deleteJob', { job: 'trial', savepoints: true })).toMatchObject({ id: 'trial' });
    await page.goto(`${run.stack.temporalUi}/namespaces/default/workflows?query=millraceJob%3D%22counted%22`);
    await page.getByText('rescale').first().waitFor();
  });

  describe.each([
    'rescale',
    'savepoint',
    'stop',
    'restore',
    'fork',
    'release',
    'checkpoints',
    'deleteJob',
    'ttlCleanup',
  ])('%s fails at once, in words, when given', (workflowType) => {
    const filled = {
      parallelism: { rescale: 2 }[workflowType],
      id: { fork: 'x' }[workflowType],
      savepoint: { release: 's' }[workflowType],
    };
    test.each([
      { what: 'nothing', input: '', words: /input is empty/ },
      { what: 'a list', input: '["counted"]', words: /input is a list/ },
      { what: 'a text', input: '"counted"', words: /input is a string/ },
      { what: 'an unknown job', input: JSON.stringify({ job: 'nosuch', ...filled }), words: /nosuch/ },
    ])('$what', async ({ input, words }) => {
      await expectFailure(workflowType, input, words);
    });
  });

  test.each([
    { what: 'parallelism 0', input: '{"job":"counted","parallelism":0}', words: /"parallelism"/ },
    {
      what: 'a field that does not exist',
      input: '{"job":"counted","parallelism":2,"paralelism":2}',
      words: /paralelism/,
    },
  ])('rescale fails at once, in words, when given $what', async ({ input, words }) => {
    await expectFailure('rescale', input, words);
  });

  async function expectFailure(workflowType: string, input: string, words: RegExp): Promise<void> {
    const id = `bad-${crypto.randomUUID()}`;
    await startByForm(run, page, { id, workflowType, input });
    const begun = performance.now();
    const failed = run.client.temporal.workflow.getHandle(id).result();
    await expect(failed).rejects.toMatchObject({ cause: { message: expect.stringMatching(words) } });
    expect(performance.now() - begun).toBeLessThan(20_000);
  }
});
