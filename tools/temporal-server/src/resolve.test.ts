import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { requireFreePort, resolveTemporal, type Source, startDevServer } from './index.ts';

const made: string[] = [];
function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'temporal-server-'));
  made.push(path);
  return path;
}
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

function failing(name: string, slow: boolean): Source {
  return { name, slow, obtain: async () => ({ failed: `${name} says no` }) };
}

test('each failure is explained before the next way is tried', async () => {
  const said: string[] = [];
  const path = await resolveTemporal({
    env: { MILLRACE_CACHE_DIR: directory() },
    onProgress: (message) => said.push(message),
    sources: [
      failing('a', false),
      failing('b', true),
      { name: 'c', slow: true, obtain: async () => ({ path: '/bin/c' }) },
    ],
  });
  expect(path).toBe('/bin/c');
  expect(said).toEqual([
    'Temporal server: trying b …',
    'Temporal server: b did not work (b says no)',
    'Temporal server: trying c …',
    'Temporal server: ready at /bin/c',
  ]);
});

test('when nothing works, the error lists what was tried and what to do', async () => {
  const attempt = resolveTemporal({ env: { MILLRACE_CACHE_DIR: directory() }, sources: [failing('a', false)] });
  await expect(attempt).rejects.toMatchObject({ code: 'temporal-not-found', kind: 'setup' });
  await expect(attempt).rejects.toThrow(/a says no[\s\S]*MILLRACE_TEMPORAL_ADDRESS/);
});

test('an unusable cache directory names its setting', async () => {
  const attempt = resolveTemporal({ env: { MILLRACE_CACHE_DIR: '/dev/null/x' }, sources: [] });
  await expect(attempt).rejects.toThrow(/MILLRACE_CACHE_DIR/);
});

test('a port in use names the setting that changes it', async () => {
  const server = createServer();
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
  try {
    await expect(requireFreePort(port, '--ui-port')).rejects.toMatchObject({ code: 'port-in-use' });
    await expect(requireFreePort(port, '--ui-port')).rejects.toThrow(/--ui-port/);
  } finally {
    server.close();
  }
});

test('the dev server starts, answers, keeps its data over a restart and stops', { timeout: 600_000 }, async () => {
  const binary = await resolveTemporal({ onProgress: (message) => process.stderr.write(`${message}\n`) });
  const dataDir = directory();
  for (let round = 0; round < 2; round++) {
    const server = await startDevServer({ binary, dataDir, port: 0, uiPort: 0 });
    const page = await fetch(server.uiUrl);
    expect(page.status).toBe(200);
    await server.stop();
    await expect(server.exited).resolves.not.toBeUndefined();
  }
});

test('a binary that is no server is a clear failure', async () => {
  const attempt = startDevServer({ binary: '/bin/false', dataDir: directory(), port: 0, uiPort: 0 });
  await expect(attempt).rejects.toMatchObject({ code: 'temporal-start-failed' });
});
