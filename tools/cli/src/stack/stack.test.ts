import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { Stack } from './stack.ts';
import { writeStackFile } from './stack-file.ts';

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

test('a reset while a stack runs on the directory is refused and wipes nothing', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'stack-'));
  made.push(dataDir);
  mkdirSync(join(dataDir, 'state'));
  writeFileSync(join(dataDir, 'state', 'precious'), '1');
  writeStackFile(dataDir, {
    pid: process.pid,
    temporalAddress: '127.0.0.1:1',
    temporalUi: 'http://127.0.0.1:2',
    console: 'http://127.0.0.1:3',
    children: [],
  });
  const stack = new Stack({
    dataDir,
    runners: 1,
    slotsPerRunner: 1,
    temporalPort: 0,
    uiPort: 0,
    consolePort: 0,
    reset: true,
    onProgress: () => undefined,
  });
  await expect(stack.start()).rejects.toMatchObject({ code: 'stack-running' });
  expect(existsSync(join(dataDir, 'state', 'precious'))).toBe(true);
  expect(existsSync(join(dataDir, 'stack.json'))).toBe(true);
});
