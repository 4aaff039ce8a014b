import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';

/** `import … from './x'`, `export … from './x'`, `import './x'`, `import('./x')`. */
const relativeImport = /(?:\bfrom\s*|\bimport\s*\(?\s*)(['"])(\.{1,2}\/[^'"\n]+)\1/g;

/**
 * What a job's code is: a hash over the content of its module and of every file that it imports by a relative path,
 * directly or not. The place of the files does not count, so equal copies on several machines have one hash. Packages
 * are not followed: they belong to the runner's installation.
 */
export async function codeHash(module: string): Promise<string> {
  const files = new Map<string, Buffer>();
  const pending = [resolve(module)];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (files.has(path)) continue;
    const content = await readFile(path);
    files.set(path, content);
    for (const [, , specifier] of content.toString('utf8').matchAll(relativeImport)) {
      const imported = resolve(dirname(path), specifier as string);
      // A match in a comment or a string may name what does not exist.
      if (!files.has(imported) && (await exists(imported))) pending.push(imported);
    }
  }
  const root = dirname(resolve(module));
  const names = [...files].map(([path, content]) => [relative(root, path), content] as const);
  names.sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHash('sha256');
  for (const [name, content] of names) hash.update(`${name}\0${content.length}\0`).update(content);
  return hash.digest('hex').slice(0, 32);
}

async function exists(path: string): Promise<boolean> {
  try {
    await readFile(path);
    return true;
  } catch {
    return false;
  }
}
