import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { allowed, compositionRoots, guarded, rootFiles } from './rules.ts';

interface Package {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Project {
  readonly name: string;
  readonly directory: string;
  readonly dependencies: ReadonlySet<string>;
}

/** Static imports and re-exports start a line (or close one that did); dynamic ones are calls. */
const importPattern = /^(?:import|export|\})[^'"\n]*?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]/gm;
const scope = '@millrace/';
const exampleScope = '@millrace-examples/';

/** Every import under `root` that the layers forbid, a line each; empty when the structure holds. */
export function checkLayers(root: string): string[] {
  const places = ['{apps,libs,tools}/*/package.json', 'examples/backend-*/package.json', '{examples,e2e}/package.json'];
  const projects = globSync(places, { cwd: root })
    .sort()
    .map((file) => readProject(root, file));
  const errors: string[] = [];
  for (const project of projects) {
    if (allowed[project.name] === undefined) errors.push(`${project.directory}: no row for it in rules.ts`);
    const files = globSync(`${project.directory}/**/*.ts`, {
      cwd: root,
      exclude: (path) => path.includes('node_modules') || isNested(project, path),
    });
    for (const file of files.sort()) errors.push(...checkFile(root, project, file));
  }
  return errors;
}

/** Backends are projects of their own, inside the examples. */
function isNested({ directory }: Project, path: string): boolean {
  return directory === 'examples' && path.startsWith('examples/backend-');
}

function readProject(root: string, file: string): Project {
  const pkg = JSON.parse(readFileSync(join(root, file), 'utf8')) as Package;
  return {
    name: pkg.name.replace(scope, '').replace(exampleScope, ''),
    directory: dirname(file),
    dependencies: new Set(Object.keys(pkg.dependencies ?? {})),
  };
}

function checkFile(root: string, project: Project, file: string): string[] {
  const source = readFileSync(join(root, file), 'utf8');
  const errors: string[] = [];
  for (const match of source.matchAll(importPattern)) {
    const specifier = (match[1] ?? match[2]) as string;
    const problem = checkImport(root, project, file, specifier);
    if (problem === undefined) continue;
    const line = source.slice(0, match.index).split('\n').length;
    errors.push(`${file}:${line}: ${problem}`);
  }
  return errors;
}

function checkImport(root: string, project: Project, file: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) {
    const target = relative(join(root, project.directory), resolve(root, dirname(file), specifier));
    return target.startsWith('..') ? `relative import leaves the project: ${specifier}` : undefined;
  }
  if (specifier.startsWith('node:')) return undefined;
  const packageName = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  if (!packageName.startsWith(scope)) return checkGuarded(project, specifier);
  const target = packageName.slice(scope.length);
  if (target === project.name) return undefined;
  if (!project.dependencies.has(packageName)) return `${packageName} is not in ${project.directory}/package.json`;
  if (allowed[project.name]?.includes(target)) return undefined;
  const isRoot = rootFiles.includes(basename(file));
  const isTest = /\.(test|prop|sim|bench)\.ts$/.test(file);
  if ((isRoot || isTest) && compositionRoots[project.name]?.includes(target)) return undefined;
  return `${project.name} may not import ${target}`;
}

function checkGuarded(project: Project, specifier: string): string | undefined {
  for (const [prefix, rooms] of Object.entries(guarded)) {
    if (specifier.startsWith(prefix) && !rooms.includes(project.name))
      return `${project.name} may not import ${specifier}`;
  }
  return undefined;
}
