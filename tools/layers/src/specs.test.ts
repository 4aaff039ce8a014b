import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { missingFailureTests, missingTests } from './specs.ts';

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

test('every test that docs/failures.md names exists', () => {
  expect(missingFailureTests(resolve(import.meta.dirname, '../../..'))).toEqual([]);
});

test('canary: a class of fault whose test is gone is noticed', () => {
  const root = mkdtempSync(join(tmpdir(), 'failures-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const directory of ['a', 'docs']) mkdirSync(join(root, directory));
  writeFileSync(join(root, 'a/a.test.ts'), "test('holds; always', () => {});");
  const row = '| a | b | `a/a.test.ts`: holds; always; `a/a.test.ts`: never; `a/b.test.ts`: x |';
  writeFileSync(join(root, 'docs/failures.md'), `| class | does | test |\n| --- | --- | --- |\n${row}\n`);
  expect(missingFailureTests(root)).toEqual(['a/a.test.ts: no test "never"', 'no file a/b.test.ts']);
});
