import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, toolCacheDir } from '@millrace/temporal-server';

/** Runs on Java 17. */
const zipkinVersion = '3.6.1';
const javaOptions = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
const startTimeoutMs = 120_000;

/** A span as Zipkin's API (v2) gives it. */
export interface ZipkinSpan {
  readonly traceId: string;
  readonly id: string;
  readonly parentId?: string;
  readonly name: string;
  readonly localEndpoint?: { readonly serviceName?: string };
  readonly tags?: Readonly<Record<string, string>>;
}

/** A real Zipkin with its spans in memory. Needs `java` (17 or later) and, the first time, `mvn` on the PATH. */
export class ZipkinServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, port: number) {
    this.#process = process;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<ZipkinServer> {
    const jar = zipkinJar();
    const port = await freePort();
    const child = spawn('java', [...javaOptions, '-jar', jar, `--server.port=${port}`], { stdio: 'ignore' });
    const server = new ZipkinServer(child, port);
    const deadline = performance.now() + startTimeoutMs;
    while (!(await server.#isHealthy())) {
      if (child.exitCode !== null || performance.now() > deadline) {
        await server[Symbol.asyncDispose]();
        throw new Error(`Zipkin ${zipkinVersion} did not start in ${startTimeoutMs / 1000} s`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return server;
  }

  /** Variables that make a process send its spans here, soon. */
  get env(): Readonly<Record<string, string>> {
    return {
      OTEL_TRACES_EXPORTER: 'zipkin',
      OTEL_EXPORTER_ZIPKIN_ENDPOINT: `${this.url}/api/v2/spans`,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
  }

  /** Every trace that has a span of this name, newest first, at most 100. */
  async traces(spanName: string): Promise<ZipkinSpan[][]> {
    const query = new URLSearchParams({ spanName: spanName.toLowerCase(), limit: '100', lookback: '3600000' });
    const response = await fetch(`${this.url}/api/v2/traces?${query.toString()}`);
    if (!response.ok) throw new Error(`Zipkin answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as ZipkinSpan[][];
  }

  async #isHealthy(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/health`)).ok;
    } catch {
      return false; // it does not listen yet
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGKILL');
    await ended;
  }
}

/** The jar, fetched once with Maven into the cache of tools (`MILLRACE_CACHE_DIR`). */
function zipkinJar(): string {
  const home = join(toolCacheDir(), `zipkin-${zipkinVersion}`);
  const name = `zipkin-server-${zipkinVersion}-exec.jar`;
  if (existsSync(join(home, name))) return join(home, name);
  const draft = `${home}-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy';
  const artifact = `-Dartifact=io.zipkin:zipkin-server:${zipkinVersion}:jar:exec`;
  const maven = spawnSync('mvn', ['-q', '-B', goal, artifact, `-DoutputDirectory=${draft}`], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (maven.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    const why = maven.error?.message ?? `${maven.stdout}${maven.stderr}`.trim().slice(-500);
    throw new Error(`Zipkin ${zipkinVersion} could not be had by Maven: ${why}`);
  }
  renameSync(draft, home);
  return join(home, name);
}
