import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@millrace/temporal-server';
import type { Program } from './binary.ts';

/** A real Redis whose every answered write is on the disk, in a directory of its own. */
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly #program: Program;
  readonly #directory: string;
  #process: ChildProcess | undefined;

  private constructor(program: Program, directory: string, port: number) {
    this.#program = program;
    this.#directory = directory;
    this.port = port;
  }

  static async start(program: Program): Promise<RedisServer> {
    const server = new RedisServer(program, mkdtempSync(join(tmpdir(), 'millrace-redis-')), await freePort());
    await server.up();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the process on the data that is there, and waits until it listens. */
  async up(): Promise<void> {
    const settings = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#directory, '--save', ''];
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always'];
    const { path, env } = this.#program;
    this.#process = spawn(path, [...settings, ...durable], { stdio: 'ignore', env: { ...process.env, ...env } });
    const deadline = performance.now() + 30_000;
    while (!(await listens(this.port))) {
      if (performance.now() > deadline) throw new Error('Redis did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
