import { globSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { MillraceError } from '@millrace/kernel';

const moduleName = /\.(ts|mts|js|mjs)$/;
const otherName = /\.(test|prop|sim|bench|d)\.[cm]?[tj]s$/;
const modulesMax = 1000;

/** A module that may hold a job. */
export interface JobFile {
  readonly path: string;
  /** Named itself, not found in a directory: then it has to be a job. */
  readonly named: boolean;
}

/**
 * The modules that one entry of the setting `jobs` means: a file, a directory (its modules, not deeper), a glob, or a
 * package.
 */
export function jobFiles(entry: string, workingDirectory: string): readonly JobFile[] {
  const path = resolve(workingDirectory, entry);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isFile()) return [{ path, named: true }];
  if (stat?.isDirectory()) return modules(globSync('*', { cwd: path }).map((name) => join(path, name)));
  if (/[*?[{]/.test(entry))
    return modules(globSync(entry, { cwd: workingDirectory }).map((one) => resolve(workingDirectory, one)));
  if (!/^[./]/.test(entry)) {
    const found = resolvePackage(entry, workingDirectory);
    if (found !== undefined) return [{ path: found, named: true }];
  }
  throw new MillraceError(
    'bad-setting',
    `setting "jobs": '${entry}' is no file, directory, glob or installed package`,
    {
      details: { setting: 'jobs', value: entry },
    },
  );
}

function modules(paths: readonly string[]): readonly JobFile[] {
  const found = paths.filter((path) => moduleName.test(path) && !otherName.test(path)).sort();
  if (found.length > modulesMax) {
    throw new MillraceError('bad-setting', `setting "jobs": ${found.length} modules match; at most ${modulesMax} may`);
  }
  return found.map((path) => ({ path, named: false }));
}

function resolvePackage(name: string, workingDirectory: string): string | undefined {
  try {
    return createRequire(join(workingDirectory, 'package.json')).resolve(name);
  } catch {
    return undefined;
  }
}
