import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { missingTests } from './specs.ts';

test('every test that a SPEC.md names exists', () => {
  expect(missingTests(resolve(import.meta.dirname, '../../..'))).toEqual([]);
});

test('canary: a promise whose test is gone is noticed', () => {
  const root = mkdtempSync(join(tmpdir(), 'specs-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'libs/x/src'), { recursive: true });
  writeFileSync(join(root, 'libs/x/src/a.test.ts'), "test('holds the line for ever', () => {});");
  writeFileSync(join(root, 'libs/x/SPEC.md'), '`a.test.ts` "holds the line…", `b.prop.ts` "moves the\nline"');
  expect(missingTests(root)).toEqual(['libs/x/SPEC.md: no file b.prop.ts', 'libs/x/SPEC.md: no test "moves the line"']);
});
