import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

/* What docs/operations.md, docs/guide.md and README.md say, against the code that they speak of. */

const root = resolve(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const sources = globSync('{apps,libs,tools}/*/src/**/*.ts', { cwd: root });
const operations = read('docs/operations.md');

/** Rows of all tables: the cells, without the ticks of code. */
const rows = operations
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );

function found(files: readonly string[], pattern: RegExp): string[] {
  const all = files.flatMap((file) => [...read(file).matchAll(pattern)].map((match) => match[1] as string));
  return [...new Set(all)].sort();
}

const isTest = (file: string): boolean => /\.(test|prop|sim|bench|fixture)\.ts$|\/testing\//.test(file);
const ofTests = ['MILLRACE_SEED', 'MILLRACE_SEEDS', 'MILLRACE_CASES', 'MILLRACE_SLOW_TESTS'];

test('every variable that a process reads is in the tables, and the other way round', () => {
  const inCode = found(
    sources.filter((file) => !isTest(file)),
    /\b(MILLRACE_[A-Z_]+[A-Z])\b/g,
  ).filter((name) => !ofTests.includes(name));
  const inTables = rows.flat().filter((cell) => /^MILLRACE_[A-Z_]+$/.test(cell));
  expect([...new Set(inTables)].sort()).toEqual(inCode);
});

test('every variable of OpenTelemetry that is read is told', () => {
  const told = found(['docs/operations.md'], /`(OTEL_[A-Z_]+)`/g);
  expect(told).toEqual(
    found(
      globSync('libs/telemetry/src/**/*.ts', { cwd: root }).filter((file) => !isTest(file)),
      /[.'](OTEL_[A-Z_]+)\b/g,
    ),
  );
});

test('every variable that only tests read is in CONTRIBUTING', () => {
  const files = [...sources, ...globSync('e2e/src/**/*.ts', { cwd: root })];
  const inTests = found(files.filter(isTest), /env(?:\.|\[')(MILLRACE_[A-Z_]+[A-Z])\b/g);
  const told = found(['CONTRIBUTING.md', 'docs/operations.md'], /\b(MILLRACE_[A-Z_]+[A-Z])\b/g);
  expect(inTests.filter((name) => !told.includes(name))).toEqual([]);
});

test.each(['task-runner', 'state-service'])('flags, variables and defaults of the %s are as in its settings', (app) => {
  const text = read(`apps/${app}/src/settings.ts`);
  const pattern =
    /flag: '([\w-]+)',\s+env: '(\w+)',\s+fallback: (?:'([^']*)'|resolve\((?:import\.meta\.dirname, )?'([^']*)'\))/g;
  const settings = [...text.matchAll(pattern)];
  expect(settings).toHaveLength(text.match(/\bfallback: (?!string)/g)?.length ?? 0);
  for (const [, flag, env, plain, path] of settings) {
    const shown = (plain ?? path ?? '').replace('../../../', '') || '–';
    expect(rows.map((row) => row.slice(0, 3))).toContainEqual([`--${flag}`, env, shown]);
  }
});

test('variables and defaults of the control plane are as in its settings', () => {
  for (const [, env, rest] of read('apps/control-plane/src/settings.ts').matchAll(
    /^ {2}(MILLRACE_\w+): ([^]*?),\n(?= {2}M|\}\))/gm,
  )) {
    const shown = /\.default\('?([^')]*)'?\)/.exec(rest as string)?.[1] || '–';
    expect(rows.map((row) => row.slice(0, 2))).toContainEqual([env, shown]);
  }
});

test('fields and defaults of the job input are as in the activity that checks it', () => {
  const text = read('apps/control-plane/src/activities/job-input.ts');
  const schema = /strictObject\(\{\n([^]*?)\n\}\)/.exec(text)?.[1] ?? '';
  const fields = [...schema.matchAll(/^ {2}(\w+): (?:z\.|id)/gm)].map((match) => match[1] as string);
  expect(fields.length).toBeGreaterThan(5);
  for (const field of fields) {
    const value = new RegExp(`input\\.${field} \\?\\? (?:record\\?\\.\\w+ \\?\\? )?(.+)[,;]`).exec(text)?.[1];
    const words: Readonly<Record<string, string>> = {
      'input.job': "the job's name",
      defaultMaxParallelism: '128',
      clusterMode: "the cluster's",
      alignTimeoutMsDefault: '1000',
    };
    const shown = value === undefined ? '–' : (words[value] ?? value);
    expect(rows.map((row) => row.slice(0, 2))).toContainEqual([field, shown]);
  }
});

test('every metric is in the table, and the other way round', () => {
  const code = sources.filter((file) => !isTest(file));
  const named = found(code, /['`](millrace_[a-z0-9_]+)['`]/g);
  const subtask = found(['libs/streams/src/runtime/slot-metrics.ts'], /gauge\('(\w+)'/g).map(
    (name) => `millrace_subtask_${name}`,
  );
  const inTable = rows.map(([name]) => name as string).filter((name) => name.startsWith('millrace_'));
  expect(inTable.sort()).toEqual([...named, ...subtask].sort());
});

test('every project is in the table of ARCHITECTURE, and the other way round', () => {
  const projects = globSync(['{apps,libs,tools}/*/package.json', '{examples,e2e}/package.json'], { cwd: root });
  const rooms = found(['ARCHITECTURE.md'], /^\| `([^`]+?)\/?` /gm);
  expect(rooms).toEqual(projects.map((file) => dirname(file)).sort());
});

test.each(['README.md', 'docs/guide.md'])(
  'the code of %s is code of the examples, which are compiled and run',
  (file) => {
    const blocks = [...read(file).matchAll(/^```ts (\S+)\n([^]*?)^```/gm)];
    expect(blocks.length).toBeGreaterThan(0);
    expect(read(file).match(/^```(ts|js|typescript)/gm)).toHaveLength(blocks.length);
    for (const [, path, code] of blocks) {
      expect(undented(read(path as string)), `${file}: ${path}`).toContain(undented(code as string));
    }
  },
);

/** Lines without their indentation, so that a part of a file may be shown flush left. */
function undented(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n');
}
