import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export interface FlinkRun {
  readonly recordsPerSecond: number;
  readonly cpuCores: number;
}

/** Apache Flink on the same work: the program of `--flink DIR`, built once in the user's cache directory. */
export class FlinkPeer {
  readonly #home: string;

  constructor(source: string) {
    if (!existsSync(join(source, 'run.sh'))) throw new Error(`--flink ${source}: no run.sh there`);
    this.#home = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'millrace', 'peer-flink');
    mkdirSync(this.#home, { recursive: true });
    cpSync(source, this.#home, { recursive: true, mode: 0 });
  }

  /** Runs a workload; the result is the JSON line that the program prints. */
  async run(workload: string, backend: string, args: readonly string[]): Promise<FlinkRun> {
    const directory = mkdtempSync(join(tmpdir(), 'flink-'));
    try {
      const line = await lastJsonLine('bash', [
        join(this.#home, 'run.sh'),
        workload,
        backend,
        ...args,
        `dir=${directory}`,
      ]);
      if (line.error !== undefined) throw new Error(`Flink failed: ${JSON.stringify(line.error)}`);
      return { recordsPerSecond: Number(line.records_per_s), cpuCores: Number(line.cpu_cores) };
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}

function lastJsonLine(command: string, args: readonly string[]): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString();
    });
    child.once('error', reject);
    child.once('close', () => {
      const line = text
        .trim()
        .split('\n')
        .findLast((candidate) => candidate.startsWith('{'));
      if (line === undefined) reject(new Error(`${command} ${args.join(' ')} printed no result`));
      else resolve(JSON.parse(line) as Record<string, unknown>);
    });
  });
}
