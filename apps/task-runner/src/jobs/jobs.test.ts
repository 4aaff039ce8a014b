import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { noTelemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { codeHash } from './code-hash.ts';
import { jobFiles } from './job-files.ts';
import { JobRegistry } from './job-registry.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-jobs-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(directory, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

describe('the hash of a job’s code', () => {
  it('follows relative imports, and changes with each of the files', async () => {
    const main = write('a/job.ts', "import { x } from './lib/x.ts';\nexport default x;\n");
    write('a/lib/x.ts', "export * from '../y.ts';\n// from './not-there.ts'\n");
    const y = write('a/y.ts', 'export const x = 1;\n');
    const before = await codeHash(main);
    expect(await codeHash(main)).toBe(before);
    writeFileSync(y, 'export const x = 2;\n');
    expect(await codeHash(main)).not.toBe(before);
  });

  it('is the same for a copy elsewhere', async () => {
    const text = "import './x.ts';\n";
    const hashes = await Promise.all(
      ['one', 'two'].map((name) => {
        write(`${name}/x.ts`, 'x');
        return codeHash(write(`${name}/job.ts`, text));
      }),
    );
    expect(hashes[0]).toBe(hashes[1]);
  });

  it('does not loop on modules that import each other', async () => {
    write('b.ts', "import './a.ts';");
    expect(await codeHash(write('a.ts', "import './b.ts';"))).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe('the setting "jobs"', () => {
  it('takes files, directories and globs; tests are no jobs', () => {
    const a = write('jobs/a.ts', '');
    write('jobs/a.test.ts', '');
    write('jobs/readme.md', '');
    const b = write('jobs/deep/b.ts', '');
    expect(jobFiles('jobs', directory)).toEqual([{ path: a, named: false }]);
    expect(jobFiles('jobs/**/*.ts', directory).map((one) => one.path)).toEqual([a, b]);
    expect(jobFiles('jobs/a.ts', directory)).toEqual([{ path: a, named: true }]);
  });

  it('is refused when it names nothing', () => {
    expect(() => jobFiles('nothing-of-the-kind', directory)).toThrow(
      /setting "jobs": 'nothing-of-the-kind' is no file/,
    );
  });
});

describe('the job registry', () => {
  const registry = (...entries: string[]) => new JobRegistry(entries, directory, noTelemetry.log);

  it('skips modules without a job in a directory, and refuses one that is named', async () => {
    write('jobs/other.js', 'export default 1;\n');
    await expect(registry('jobs').find('x')).rejects.toMatchObject({
      code: 'job-unknown',
      message: expect.stringContaining('none is known'),
    });
    await expect(registry('jobs/other.js').find('x')).rejects.toMatchObject({ code: 'job-module' });
  });
});
