import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@millrace/temporal-server';
import { kafkaJars } from './jars.ts';

/** Small: one node on loopback with a few megabytes of data. */
const javaOptions = ['-Xmx400m', '-Xms96m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto'];

/** A real Apache Kafka broker (KRaft, one node that is its own controller) in a directory of its own. */
export class KafkaBroker implements AsyncDisposable {
  readonly address: string;
  readonly #directory: string;
  readonly #jars: string;
  #process: ChildProcess | undefined;

  private constructor(directory: string, jars: string, port: number) {
    this.#directory = directory;
    this.#jars = jars;
    this.address = `127.0.0.1:${port}`;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<KafkaBroker> {
    const jars = kafkaJars();
    const directory = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
    const [port, controllerPort] = [await freePort(), await freePort()];
    const broker = new KafkaBroker(directory, jars, port);
    mkdirSync(join(directory, 'data'));
    writeFileSync(join(directory, 'server.properties'), properties(directory, port, controllerPort, settings));
    try {
      broker.#format();
      await broker.up();
      return broker;
    } catch (error) {
      await broker[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts the process on the data that is there, and waits until it answers. */
  async up(): Promise<void> {
    const log = createWriteStream(join(this.#directory, 'broker.log'), { flags: 'a' });
    const child = spawn('java', [...this.#java(), 'kafka.Kafka', this.#settings], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = child;
    child.stdout.pipe(log);
    child.stderr.pipe(log);
    const deadline = performance.now() + 60_000;
    while (!(await this.#listens())) {
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`Kafka did not start: ${this.log()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** `kill -9`, or an orderly end. */
  async down(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    const killer = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(killer);
  }

  /** The end of what it has said. */
  log(): string {
    return readFileSync(join(this.#directory, 'broker.log'), 'utf8').slice(-2000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #settings(): string {
    return join(this.#directory, 'server.properties');
  }

  #java(): string[] {
    return [...javaOptions, '-cp', join(this.#jars, '*')];
  }

  #format(): void {
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url');
    const args = ['kafka.tools.StorageTool', 'format', '--standalone', '-t', id, '-c', this.#settings];
    const done = spawnSync('java', [...this.#java(), ...args], { encoding: 'utf8', timeout: 60_000 });
    if (done.status !== 0) throw new Error(`Kafka's storage could not be formatted: ${done.stdout}${done.stderr}`);
  }

  #listens(): Promise<boolean> {
    const [host, port] = this.address.split(':');
    return new Promise((resolve) => {
      const socket = connect(Number(port), host);
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
  }
}

function properties(
  directory: string,
  port: number,
  controllerPort: number,
  settings: Readonly<Record<string, string>>,
): string {
  const all: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.bootstrap.servers': `127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': join(directory, 'data'),
    'num.partitions': '4',
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '2',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '2',
    'transaction.abort.timed.out.transaction.cleanup.interval.ms': '1000',
    'group.initial.rebalance.delay.ms': '0',
    'num.network.threads': '1',
    'num.io.threads': '2',
    'log.cleaner.enable': 'false',
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
