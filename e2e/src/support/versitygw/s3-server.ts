import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@millrace/temporal-server';
import { versitygwBinary } from './binary.ts';

const startTimeoutMs = 30_000;

/** A real S3 service (versitygw on a directory of its own), with one bucket `state`. */
export class S3Server implements AsyncDisposable {
  /** Credentials, as every AWS client takes them from its environment. */
  static readonly env = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'testtesttest' } as const;
  readonly port: number;
  readonly #directory: string;
  #process: ChildProcess | undefined;

  private constructor(directory: string, port: number) {
    this.#directory = directory;
    this.port = port;
  }

  static async start(): Promise<S3Server> {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-s3-'));
    mkdirSync(join(directory, 'state'));
    const server = new S3Server(directory, await freePort());
    try {
      await server.up();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Where `path` in the bucket is, as a setting. */
  uri(path: string, parameters: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams({
      endpoint: `http://127.0.0.1:${this.port}`,
      pathStyle: 'true',
      ...parameters,
    });
    return `s3://state/${path}?${query.toString()}`;
  }

  /** Starts the process on the data that is there, and waits until it answers. */
  async up(): Promise<void> {
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = S3Server.env;
    // One domain for buckets as host names; addresses still mean path style.
    const options = ['--quiet', '--keep-alive', '--port', `127.0.0.1:${this.port}`, '--virtual-domain', virtualDomain];
    const child = spawn(versitygwBinary(), [...options, 'posix', '--io-buffer-size', '65536', this.#directory], {
      env: { ...process.env, ROOT_ACCESS_KEY: AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: AWS_SECRET_ACCESS_KEY },
      stdio: 'ignore',
    });
    this.#process = child;
    const deadline = performance.now() + startTimeoutMs;
    while (!(await this.#answers())) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error('versitygw did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** `kill -9`. What was written stays. */
  async down(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async #answers(): Promise<boolean> {
    try {
      await fetch(`http://127.0.0.1:${this.port}/`);
      return true;
    } catch {
      return false; // it does not listen yet
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** What the server takes for the end of `bucket.domain`. */
export const virtualDomain = 'localhost';
