import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toolCacheDir } from '@millrace/temporal-server';

/** Runs on Java 17. */
const hadoopVersion = '3.5.0';
const home = join(toolCacheDir(), `hadoop-${hadoopVersion}`);

/** Why the server cannot be had here; undefined when it can. */
export function hdfsMissing(): string | undefined {
  if (spawnSync('java', ['-version']).status !== 0) return 'java is not on the PATH';
  if (existsSync(home)) return undefined;
  return spawnSync('mvn', ['-version']).status === 0 ? undefined : 'mvn is not on the PATH';
}

/** Directory of the jars of a name node and data nodes, fetched once with Maven into the cache of tools (`MILLRACE_CACHE_DIR`). */
export function hdfsJars(): string {
  if (existsSync(home)) return home;
  const draft = `${home}-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${draft}`];
  const pom = join(import.meta.dirname, 'pom.xml');
  const maven = spawnSync('mvn', ['-q', '-B', '-f', pom, ...goal, `-Dhadoop.version=${hadoopVersion}`], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (maven.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    const why = maven.error?.message ?? `${maven.stdout}${maven.stderr}`.trim().slice(-500);
    throw new Error(`the jars of Hadoop ${hadoopVersion} could not be had by Maven: ${why}`);
  }
  renameSync(draft, home);
  return home;
}
