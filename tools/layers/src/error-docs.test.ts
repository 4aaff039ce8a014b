import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { errorDocs } from './error-docs.ts';

test('docs/errors.md says what the code says (npm run docs)', () => {
  expect(readFileSync(resolve(import.meta.dirname, '../../../docs/errors.md'), 'utf8')).toBe(errorDocs());
});
