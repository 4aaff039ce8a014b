import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Bundling takes seconds of CPU, and a control plane that comes back after a crash should not wait for it: bundles are
 * kept on disk under a hash of everything that goes into them. A file that is missing or damaged is made anew.
 */
export async function cachedBundle(
  interceptors: readonly string[],
  build: () => Promise<{ readonly code: string }>,
): Promise<{ readonly code: string }> {
  const path = join(cacheDirectory(process.env), `workflows-${inputHash(interceptors)}.js`);
  const kept = read(path);
  if (kept !== undefined) return { code: kept };
  const { code } = await build();
  try {
    mkdirSync(dirname(path), { recursive: true });
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, `//${sha256(code)}\n${code}`);
    renameSync(temporary, path);
  } catch {
    // Without a place to keep it, the next start bundles again.
  }
  return { code };
}

function cacheDirectory(env: NodeJS.ProcessEnv): string {
  return env.MILLRACE_CACHE_DIR ?? join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'millrace');
}

function read(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8');
    const end = text.indexOf('\n');
    const code = text.slice(end + 1);
    return text.slice(2, end) === sha256(code) ? code : undefined;
  } catch {
    return undefined;
  }
}

function inputHash(interceptors: readonly string[]): string {
  const require = createRequire(import.meta.url);
  const workflows = fileURLToPath(new URL('../workflows/', import.meta.url));
  const files = [
    ...globSync('*.ts', { cwd: workflows })
      .sort()
      .map((file) => join(workflows, file)),
    ...protoFiles(),
    ...interceptors,
    ...[
      '@temporalio/workflow',
      '@temporalio/common',
      '@temporalio/worker',
      '@temporalio/interceptors-opentelemetry-v2',
    ].map((name) => join(dirname(require.resolve(name)), '..', 'package.json')),
  ];
  return sha256([process.version, ...files.map((file) => `${file}\n${readFileSync(file, 'utf8')}`)].join('\n')).slice(
    0,
    32,
  );
}

/** What workflows import of the JSON types. */
function protoFiles(): readonly string[] {
  const directory = dirname(fileURLToPath(import.meta.resolve('@millrace/proto/control')));
  return ['control.ts', 'operations.ts'].map((file) => join(directory, file));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
