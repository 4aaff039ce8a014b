import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectExactFlights } from './support/flights-result.ts';
import { chromiumPath, hasChromium, openBrowser, startByForm } from './support/start-form.ts';
import { TestStack } from './support/test-stack.ts';

const rows = 20_000;

let run: TestStack;
beforeAll(async () => {
  run = await TestStack.start({ runners: 1, slots: 2 });
});
afterAll(() => run[Symbol.asyncDispose]());

describe("by Temporal's HTTP API, which the Web UI posts to", () => {
  test('a job starts, runs and gives its result', async () => {
    const output = run.path('api-out');
    await start('flights-api', [{ job: 'flights', id: 'flights-api', parallelism: 2, options: { output, rows } }]);
    await expect(run.client.job('flights-api').result()).resolves.toMatchObject({ state: 'finished' });
    await expectExactFlights(output, rows);
  });

  test.each([
    { what: 'nothing', input: null, words: /input is empty/ },
    { what: 'a list', input: ['flights'], words: /input is a list/ },
    { what: 'a text', input: 'flights', words: /input is a string/ },
    { what: 'a job that does not exist', input: { job: 'nosuch' }, words: /nosuch.*flights/s },
    { what: 'parallelism 0', input: { job: 'flights', parallelism: 0 }, words: /"parallelism"/ },
    { what: 'a field that does not exist', input: { job: 'flights', paralelism: 2 }, words: /"paralelism"/ },
    { what: 'a bad option', input: { job: 'flights', options: { rows: 'many' } }, words: /rows/ },
  ])('$what as input fails at once, in words', async ({ input, words }) => {
    const id = `bad-${crypto.randomUUID()}`;
    const withId = typeof input === 'object' && input !== null && !Array.isArray(input) ? { ...input, id } : input;
    await start(id, [withId]);
    await expectFailure(id, words);
  });

  test('no input at all fails at once, in words', async () => {
    const id = `bad-${crypto.randomUUID()}`;
    await start(id, []);
    await expectFailure(id, /input is empty/);
  });
});

describe.skipIf(!hasChromium)(`by hand, in the browser (skipped without ${chromiumPath})`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  test('the start form runs a job, and its page shows the result', async () => {
    const page = await browser.newPage();
    const output = run.path('ui-out');
    const input = { job: 'flights', id: 'flights-ui', parallelism: 2, options: { output, rows } };
    await startByForm(run, page, { id: 'flights-ui', workflowType: 'job', input: JSON.stringify(input) });
    await expect(run.client.job('flights-ui').result()).resolves.toMatchObject({ state: 'finished' });
    await expectExactFlights(output, rows);
    await page.goto(`${run.stack.temporalUi}/namespaces/default/workflows/flights-ui`);
    await page.getByText('Completed').first().waitFor();
  });

  test('the start form with an empty input fails at once, in words', async () => {
    const page = await browser.newPage();
    await startByForm(run, page, { id: 'empty-ui', workflowType: 'job', input: '' });
    await expectFailure('empty-ui', /input is empty/);
  });
});

async function start(id: string, input: readonly unknown[]): Promise<void> {
  const response = await fetch(`${run.stack.temporalHttp}/api/v1/namespaces/default/workflows/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ workflowType: { name: 'job' }, taskQueue: { name: 'control' }, input }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
}

async function expectFailure(id: string, words: RegExp): Promise<void> {
  const begun = performance.now();
  await expect(run.client.job(id).result()).rejects.toMatchObject({ message: expect.stringMatching(words) });
  expect(performance.now() - begun).toBeLessThan(20_000);
}
