import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@millrace/temporal-server';
import { hdfsJars } from './jars.ts';

const nameNode = 'org.apache.hadoop.hdfs.server.namenode.NameNode';
const dataNode = 'org.apache.hadoop.hdfs.server.datanode.DataNode';
/** Small: loopback, a few megabytes of data. */
const javaOptions = [
  '-Xmx256m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Xshare:auto',
  '--add-opens=java.base/java.lang=ALL-UNNAMED',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
];
const startTimeoutMs = 180_000;

/** A real HDFS: a name node and data nodes, each a process, in a directory of its own. Every block is on every data node. */
export class HdfsCluster implements AsyncDisposable {
  readonly #directory: string;
  readonly #jars: string;
  readonly #dataNodes: number;
  readonly #ports: { readonly rpc: number; readonly http: number };
  readonly #processes = new Map<string, ChildProcess>();

  private constructor(directory: string, dataNodes: number, ports: { readonly rpc: number; readonly http: number }) {
    this.#directory = directory;
    this.#jars = hdfsJars();
    this.#dataNodes = dataNodes;
    this.#ports = ports;
  }

  static async start(options: { readonly dataNodes: number }): Promise<HdfsCluster> {
    const ports = { rpc: await freePort(), http: await freePort() };
    const cluster = new HdfsCluster(mkdtempSync(join(tmpdir(), 'millrace-hdfs-')), options.dataNodes, ports);
    try {
      await cluster.#up();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Where `path` is, as a setting. */
  uri(path: string, parameters: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams({ user: 'millrace', ...parameters });
    return `hdfs://127.0.0.1:${this.#ports.http}/${path}?${query.toString()}`;
  }

  /** `kill -9` of a data node, from 1. The name node goes on handing it out for some seconds. */
  async killDataNode(number: number): Promise<void> {
    await this.#kill(`data-node-${number}`);
  }

  async #up(): Promise<void> {
    const classPath = await this.#configure('name-node');
    const formatted = spawnSync('java', [...javaOptions, '-cp', classPath, nameNode, '-format', '-force'], {
      env: this.#env,
      encoding: 'utf8',
      timeout: startTimeoutMs,
    });
    if (formatted.status !== 0)
      throw new Error(`the name node could not be formatted: ${formatted.stderr.slice(-1000)}`);
    this.#spawn('name-node', nameNode, classPath);
    for (let number = 1; number <= this.#dataNodes; number++) {
      const name = `data-node-${number}`;
      this.#spawn(name, dataNode, await this.#configure(name));
    }
    const deadline = performance.now() + startTimeoutMs;
    while ((await this.#liveDataNodes()) < this.#dataNodes) {
      const dead = [...this.#processes].find(([, child]) => child.exitCode !== null)?.[0];
      if (dead !== undefined) throw new Error(`${dead} ended: ${this.#log(dead)}`);
      if (performance.now() > deadline) throw new Error(`HDFS did not start: ${this.#log('name-node')}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** Writes the settings of one process; its class path. */
  async #configure(name: string): Promise<string> {
    const directory = join(this.#directory, name);
    mkdirSync(directory);
    const { rpc, http } = this.#ports;
    writeFileSync(
      join(directory, 'core-site.xml'),
      xml({ 'fs.defaultFS': `hdfs://127.0.0.1:${rpc}`, 'hadoop.tmp.dir': join(directory, 'tmp') }),
    );
    writeFileSync(
      join(directory, 'hdfs-site.xml'),
      xml({
        'dfs.replication': String(this.#dataNodes),
        'dfs.permissions.enabled': 'false',
        'dfs.namenode.name.dir': `file://${join(directory, 'data')}`,
        'dfs.namenode.rpc-address': `127.0.0.1:${rpc}`,
        'dfs.namenode.http-address': `127.0.0.1:${http}`,
        'dfs.namenode.safemode.extension': '0',
        'dfs.namenode.safemode.min.datanodes': '1',
        // A data node that is silent for ten seconds and a bit counts as dead; in production it is ten minutes.
        'dfs.namenode.heartbeat.recheck-interval': '2000',
        'dfs.heartbeat.interval': '1',
        'dfs.client.block.write.replace-datanode-on-failure.policy': 'NEVER',
        // No fsync of each edit: the processes are killed, the machine is not.
        'dfs.namenode.edits.noeditlogchannelflush': 'true',
        'dfs.namenode.datanode.registration.ip-hostname-check': 'false',
        'dfs.datanode.data.dir': `file://${join(directory, 'data')}`,
        'dfs.datanode.hostname': '127.0.0.1',
        'dfs.datanode.address': `127.0.0.1:${await freePort()}`,
        'dfs.datanode.ipc.address': `127.0.0.1:${await freePort()}`,
        'dfs.datanode.http.address': `127.0.0.1:${await freePort()}`,
      }),
    );
    return `${directory}:${join(this.#jars, '*')}`;
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, HADOOP_USER_NAME: 'millrace' };
  }

  #spawn(name: string, main: string, classPath: string): void {
    const log = openSync(join(this.#directory, `${name}.log`), 'a');
    const options = [...javaOptions, `-Dhadoop.log.dir=${this.#directory}`, '-cp', classPath, main];
    this.#processes.set(name, spawn('java', options, { stdio: ['ignore', log, log], env: this.#env }));
  }

  async #liveDataNodes(): Promise<number> {
    try {
      const query = 'qry=Hadoop:service=NameNode,name=FSNamesystemState';
      const response = await fetch(`http://127.0.0.1:${this.#ports.http}/jmx?${query}`);
      const { beans } = (await response.json()) as { beans: Array<{ readonly NumLiveDataNodes?: number }> };
      return beans[0]?.NumLiveDataNodes ?? 0;
    } catch {
      return 0; // it does not listen yet
    }
  }

  #log(name: string): string {
    return readFileSync(join(this.#directory, `${name}.log`), 'utf8').slice(-2000);
  }

  async #kill(name: string): Promise<void> {
    const child = this.#processes.get(name);
    this.#processes.delete(name);
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#processes.keys()) await this.#kill(name);
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function xml(properties: Readonly<Record<string, string>>): string {
  const rows = Object.entries(properties).map(
    ([name, value]) => `<property><name>${name}</name><value>${value}</value></property>\n`,
  );
  return `<configuration>\n${rows.join('')}</configuration>\n`;
}
