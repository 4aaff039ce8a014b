import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toolCacheDir } from '@millrace/temporal-server';

/** Runs on Java 17. */
const kafkaVersion = '4.1.1';

/**
 * Directory of the jars of an Apache Kafka broker, fetched once with Maven into the cache of tools (`MILLRACE_CACHE_DIR`).
 * Needs `java` (17 or later) and, the first time, `mvn` on the PATH.
 */
export function kafkaJars(): string {
  const home = join(toolCacheDir(), `kafka-${kafkaVersion}`);
  const jars = join(home, 'lib');
  if (existsSync(jars)) return jars;
  mkdirSync(home, { recursive: true });
  const draft = join(home, `lib-${process.pid}`);
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${draft}`];
  const pom = join(import.meta.dirname, 'pom.xml');
  const maven = spawnSync('mvn', ['-q', '-B', '-f', pom, ...goal, `-Dkafka.version=${kafkaVersion}`], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (maven.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    const why = maven.error?.message ?? `${maven.stdout}${maven.stderr}`.trim().slice(-500);
    throw new Error(`the jars of Apache Kafka ${kafkaVersion} could not be had by Maven: ${why}`);
  }
  renameSync(draft, jars);
  return jars;
}
