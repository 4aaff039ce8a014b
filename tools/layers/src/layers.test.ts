import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { checkLayers } from './check.ts';

const made: string[] = [];

function workspace(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'layers-'));
  made.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

afterEach(() => {
  for (const root of made.splice(0)) rmSync(root, { recursive: true, force: true });
});

function pkg(name: string, dependencies: readonly string[] = []): string {
  return JSON.stringify({
    name: `@millrace/${name}`,
    dependencies: Object.fromEntries(dependencies.map((d) => [`@millrace/${d}`, '0.1.0'])),
  });
}

test('this workspace keeps its layers', () => {
  expect(checkLayers(resolve(import.meta.dirname, '../../..'))).toEqual([]);
});

test('canary: aec that imports state is refused', () => {
  const root = workspace({
    'libs/aec/package.json': pkg('aec', ['state']),
    'libs/aec/src/x.ts': "import type { StateStore } from '@millrace/state';",
  });
  expect(checkLayers(root)).toEqual(['libs/aec/src/x.ts:1: aec may not import state']);
});

test('canary: lsm that reaches past ufs to dfs is refused', () => {
  const root = workspace({
    'libs/lsm/package.json': pkg('lsm', ['dfs']),
    'libs/lsm/src/x.ts': "\nimport { openDfs } from '@millrace/dfs';",
  });
  expect(checkLayers(root)).toEqual(['libs/lsm/src/x.ts:2: lsm may not import dfs']);
});

test('only a composition root of the task-runner chooses the store', () => {
  const root = workspace({
    'apps/task-runner/package.json': pkg('task-runner', ['state-lsm']),
    'apps/task-runner/src/compose.ts': "import { openLsmStore } from '@millrace/state-lsm';",
    'apps/task-runner/src/attempt.ts': "import { openLsmStore } from '@millrace/state-lsm';",
  });
  expect(checkLayers(root)).toEqual(['apps/task-runner/src/attempt.ts:1: task-runner may not import state-lsm']);
});

test('an import that leaves its project, or that its package.json does not name, is refused', () => {
  const root = workspace({
    'libs/dfs/package.json': pkg('dfs'),
    'libs/dfs/src/x.ts': "import '../../kernel/src/index.ts';\nimport '@millrace/kernel';",
  });
  expect(checkLayers(root)).toEqual([
    'libs/dfs/src/x.ts:1: relative import leaves the project: ../../kernel/src/index.ts',
    'libs/dfs/src/x.ts:2: @millrace/kernel is not in libs/dfs/package.json',
  ]);
});

test('Temporal and gRPC stay in their rooms', () => {
  const root = workspace({
    'libs/streams/package.json': pkg('streams'),
    'libs/streams/src/x.ts': "import { proxyActivities } from '@temporalio/workflow';",
  });
  expect(checkLayers(root)).toEqual(['libs/streams/src/x.ts:1: streams may not import @temporalio/workflow']);
});
