import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * What the SPEC.md files name and the tests do not have: test files (`x.test.ts`) and parts of test names ("so and so",
 * shortened by …). A line each; empty when every promise is held by a test that exists.
 */
export function missingTests(root: string): string[] {
  const tests = globSync(['{libs,apps}/*/src/**/*.ts', 'e2e/src/**/*.ts'], { cwd: root }).filter(isTest);
  const names = tests.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const errors: string[] = [];
  for (const spec of globSync('{libs,apps}/*/SPEC.md', { cwd: root }).sort()) {
    const text = readFileSync(join(root, spec), 'utf8').replaceAll(/\s+/g, ' ');
    const own = tests.filter((file) => file.startsWith(`${dirname(spec)}/`));
    for (const [, file] of text.matchAll(/`(?:src\/)?([\w./-]+\.(?:test|prop|sim|bench)\.ts|[\w-]+-cases\.ts)`/g)) {
      if (!tests.includes(file as string) && !own.some((path) => path.endsWith(`/${file}`)))
        errors.push(`${spec}: no file ${file}`);
    }
    for (const [, quoted] of text.matchAll(/"([^"]+)"/g)) {
      const parts = (quoted as string).split('…').map((part) => part.trim());
      if (!parts.every((part) => names.includes(part))) errors.push(`${spec}: no test "${quoted}"`);
    }
  }
  return errors;
}

function isTest(file: string): boolean {
  return /\.(test|prop|sim|bench)\.ts$/.test(file) || basename(dirname(file)) === 'testing';
}

/** What the tables of docs/failures.md name and the tests do not have: a line each. A cell is `file`: name; `file`: name. */
export function missingFailureTests(root: string): string[] {
  const errors: string[] = [];
  const rows = readFileSync(join(root, 'docs/failures.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  for (const row of rows) {
    const cell = row.split('|').at(-2) ?? '';
    for (const [, file, name] of cell.matchAll(/`([^`]+\.ts)`: (.*?)(?=; `[^`]+\.ts`: |\s*$)/g)) {
      const path = join(root, file as string);
      if (!existsSync(path)) errors.push(`no file ${file}`);
      else if (!plainNames(readFileSync(path, 'utf8')).includes(plainNames(name as string))) {
        errors.push(`${file}: no test "${name}"`);
      }
    }
  }
  return errors;
}

/** Without the escapes and line breaks that a name may have in code. */
function plainNames(text: string): string {
  return text.replaceAll(/[\\`]/g, '').replaceAll(/\s+/g, ' ').trim();
}
