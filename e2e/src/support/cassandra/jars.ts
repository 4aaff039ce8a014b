import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toolCacheDir } from '@millrace/temporal-server';

/** Runs on Java 17. */
const cassandraVersion = '5.0.9';

/** Why a ring cannot be started on this machine; undefined when it can. */
export function cassandraMissing(): string | undefined {
  if (spawnSync('java', ['-version']).status !== 0) return 'Cassandra needs java 17 on the PATH';
  if (existsSync(jarsDirectory()) || spawnSync('mvn', ['-version']).status === 0) return undefined;
  return 'the jars of Cassandra are fetched with mvn, which is not on the PATH';
}

/**
 * Directory of the jars of an Apache Cassandra node, fetched once with Maven into the cache of tools
 * (`MILLRACE_CACHE_DIR`). Needs `java` (17) and, the first time, `mvn` on the PATH.
 */
export function cassandraJars(): string {
  const jars = jarsDirectory();
  if (existsSync(jars)) return jars;
  const home = join(jars, '..');
  mkdirSync(home, { recursive: true });
  const draft = join(home, `lib-${process.pid}`);
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${draft}`];
  const pom = join(import.meta.dirname, 'pom.xml');
  const maven = spawnSync('mvn', ['-q', '-B', '-f', pom, ...goal, `-Dcassandra.version=${cassandraVersion}`], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (maven.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    const why = maven.error?.message ?? `${maven.stdout}${maven.stderr}`.trim().slice(-500);
    throw new Error(`the jars of Apache Cassandra ${cassandraVersion} could not be had by Maven: ${why}`);
  }
  renameSync(draft, jars);
  return jars;
}

function jarsDirectory(): string {
  return join(toolCacheDir(), `cassandra-${cassandraVersion}`, 'lib');
}
