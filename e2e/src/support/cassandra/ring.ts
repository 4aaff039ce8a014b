import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@millrace/temporal-server';
import { cassandraJars } from './jars.ts';
import { cassandraYaml, javaArguments, logbackXml, type NodeConfig } from './node-config.ts';

const startMs = 180_000;

/** A real ring of Apache Cassandra on 127.0.0.1, 127.0.0.2 …, in a directory of its own. */
export class CassandraRing implements AsyncDisposable {
  readonly port: number;
  readonly #directory: string;
  readonly #nodes: readonly NodeConfig[];
  readonly #processes = new Map<number, ChildProcess>();

  private constructor(directory: string, nodes: readonly NodeConfig[], port: number) {
    this.#directory = directory;
    this.#nodes = nodes;
    this.port = port;
  }

  /** Starts the seed, then the other nodes at once, and waits until each answers. */
  static async start(nodes: number): Promise<CassandraRing> {
    cassandraJars();
    const root = mkdtempSync(join(tmpdir(), 'millrace-cassandra-'));
    const [nativePort, storagePort] = [await freePort(), await freePort()];
    const configs = Array.from({ length: nodes }, (_, i) => ({
      number: i + 1,
      address: `127.0.0.${i + 1}`,
      seed: '127.0.0.1',
      directory: join(root, `node-${i + 1}`),
      nativePort,
      storagePort,
    }));
    const ring = new CassandraRing(root, configs, nativePort);
    try {
      await ring.up(1);
      await Promise.all(configs.slice(1).map((config) => ring.up(config.number)));
      return ring;
    } catch (error) {
      await ring[Symbol.asyncDispose]();
      throw error;
    }
  }

  get contactPoints(): readonly string[] {
    return this.#nodes.map((node) => node.address);
  }

  /** What `--backend-options` of the state-service is to say. */
  backendOptions(changes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
    const replicationFactor = Math.min(3, this.#nodes.length);
    return { contactPoints: this.contactPoints, port: this.port, replicationFactor, ...changes };
  }

  /** Starts a node on the data that is there, and waits until it answers. */
  async up(number: number): Promise<void> {
    const config = this.#node(number);
    const { directory } = config;
    if (!existsSync(directory)) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'cassandra.yaml'), cassandraYaml(config));
    writeFileSync(join(directory, 'logback.xml'), logbackXml(directory));
    const output = createWriteStream(join(directory, 'output.log'), { flags: 'a' });
    const child = spawn('java', javaArguments(directory, cassandraJars()), { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#processes.set(number, child);
    child.stdout.pipe(output);
    child.stderr.pipe(output);
    const deadline = performance.now() + startMs;
    while (!(await listens(config.address, config.nativePort))) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`node ${number} of Cassandra did not start: ${this.log(number)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** `kill -9`. */
  async kill(number: number): Promise<void> {
    const child = this.#processes.get(number);
    this.#processes.delete(number);
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** The end of what a node has said. */
  log(number: number): string {
    return readFileSync(join(this.#node(number).directory, 'output.log'), 'utf8').slice(-2000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.kill(node.number)));
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #node(number: number): NodeConfig {
    const node = this.#nodes[number - 1];
    if (node === undefined) throw new Error(`the ring has no node ${number}`);
    return node;
  }
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
