import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MillraceError } from '@millrace/kernel';
import type { CreateStateBackend } from '@millrace/state';

/** Backends that come with Millrace and are modules like any other. */
const builtIn: Readonly<Record<string, string>> = { kv: '@millrace/kv-shard', cql: '@millrace/kv-cql' };

/**
 * The factory of the backend `name`: `kv`, `cql`, a package, or a path (`./…`, `/…`) of a module or of a package's
 * directory, from `directory`. Rejects with `bad-setting`, which says what is missing.
 */
export async function loadBackend(name: string, directory: string): Promise<CreateStateBackend> {
  const specifier = isPath(name)
    ? pathToFileURL(entryOf(resolve(directory, name), name)).href
    : (builtIn[name] ?? name);
  let loaded: Readonly<Record<string, unknown>>;
  try {
    loaded = (await import(specifier)) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw badBackend(name, `it cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
  const { createStateBackend } = loaded;
  if (typeof createStateBackend === 'function') return createStateBackend as CreateStateBackend;
  throw badBackend(name, 'it exports no function createStateBackend (CreateStateBackend of @millrace/state)');
}

function isPath(name: string): boolean {
  return /^(\.{0,2}\/|\.{1,2}$)/.test(name);
}

/** The module itself, or the main one of a package's directory. */
function entryOf(path: string, name: string): string {
  if (!existsSync(path)) throw badBackend(name, `there is no ${path}`);
  if (!statSync(path).isDirectory()) return path;
  for (const entry of [declaredEntry(path), 'index.ts', 'index.js', 'src/index.ts']) {
    if (entry !== undefined && existsSync(join(path, entry))) return join(path, entry);
  }
  throw badBackend(name, `${path} has neither a package.json with "exports" or "main", nor an index.ts or index.js`);
}

function declaredEntry(path: string): string | undefined {
  const file = join(path, 'package.json');
  if (!existsSync(file)) return undefined;
  const { exports, main } = JSON.parse(readFileSync(file, 'utf8')) as { exports?: unknown; main?: unknown };
  const root = isObject(exports) && '.' in exports ? exports['.'] : exports;
  const chosen = isObject(root) ? (root['import'] ?? root['default']) : root;
  return [chosen, main].find((entry) => typeof entry === 'string');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function badBackend(name: string, reason: string, cause?: unknown): MillraceError {
  const text = `setting "backend" is ${JSON.stringify(name)}: ${reason}. Use lsm, memory, kv, cql, the name of a package or a path beginning with "./"; set --backend or MILLRACE_STATE_SERVICE_BACKEND.`;
  return new MillraceError('bad-setting', text, { cause, details: { setting: 'backend', value: name } });
}
