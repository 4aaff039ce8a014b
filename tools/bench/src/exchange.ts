import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { median, printResult } from './result.ts';

export interface ExchangeBenchOptions {
  readonly json: boolean;
  readonly repeats: number;
}

type Side = 'tcp' | 'grpc' | 'slots';

interface Run {
  readonly side: Side;
  readonly frames: number;
  readonly frameBytes: number;
  readonly windowBytes: number;
  readonly stopped?: boolean;
}

interface Report {
  readonly kind: string;
  readonly tcp: string;
  readonly grpc: string;
  readonly megabytesPerSecond: number;
  readonly residentBytes: number;
}

const mib = 1024 * 1024;
/** What a task-runner process does, by itself. */
const runnerProcess = new URL('../../../apps/task-runner/src/exchange/testing/bench-process.ts', import.meta.url);
const bytesEach = { wire: 1024 * mib, slots: 4096 * mib };
/** The task-runner's default window of a channel; at least four frames. */
const windowBytes = 256 * 1024;
const frameSizes = [32 * 1024, 256 * 1024];

/**
 * The exchange of task-runners by itself: the same packed frames from a slot's thread in one process to a slot's thread in
 * another (ports, bridges, credits and gRPC as in an attempt), over a bare TCP socket with the same frames from main
 * thread to main thread, and between two slots of one process. Paired runs, in turn. It decodes no record. Then: what the
 * writer's process holds when its reader stands still.
 */
export async function exchange(options: ExchangeBenchOptions): Promise<void> {
  for (const frameBytes of frameSizes) {
    const cases = [
      { name: 'bare TCP', side: 'tcp', windowBytes: 0, against: undefined },
      { name: 'two runners, gRPC', side: 'grpc', windowBytes: Math.max(windowBytes, 4 * frameBytes), against: 0 },
      { name: 'two runners, gRPC, window 2 MiB', side: 'grpc', windowBytes: 2 * mib, against: 0 },
      { name: 'two slots of a process', side: 'slots', windowBytes: Math.max(windowBytes, 4 * frameBytes), against: 1 },
    ] as const;
    const rates: number[][] = cases.map(() => []);
    for (let i = 0; i < options.repeats; i++) {
      for (const [c, one] of cases.entries()) rates[c]?.push(await measure({ ...one, frameBytes }));
    }
    const medians = rates.map(median);
    for (const [c, { name, against }] of cases.entries()) {
      const value = medians[c] as number;
      const of = against === undefined ? undefined : { name: cases[against].name, value: medians[against] as number };
      const ratio = of === undefined ? {} : { baseline: of.name, ratio: value / of.value };
      const label = `${name}, frames of ${frameBytes / 1024} KiB`;
      printResult({ bench: 'exchange', case: label, value, unit: 'MB/s', ...ratio }, options.json);
    }
  }
  const { before, after } = await stopped();
  const held = { bench: 'exchange', case: 'writer, its reader stopped for 5 s: growth', unit: 'MiB resident' };
  printResult({ ...held, value: (after - before) / mib }, options.json);
}

class Peer {
  readonly #process: ChildProcess;

  constructor(index: number) {
    this.#process = fork(runnerProcess, [String(index)], { stdio: 'inherit' });
  }

  tell(command: unknown): void {
    this.#process.send(command as object);
  }

  async next(kind: string): Promise<Report> {
    for (;;) {
      const [report] = (await once(this.#process, 'message')) as [Report];
      if (report.kind === kind) return report;
    }
  }

  stop(): void {
    this.#process.kill('SIGKILL');
  }
}

/** Megabytes a second of one run, measured by the reader from the first frame to the last. */
async function measure(of: Omit<Run, 'frames'>): Promise<number> {
  const { side, frameBytes, windowBytes: window } = of;
  const frames = Math.floor((side === 'slots' ? bytesEach.slots : bytesEach.wire) / frameBytes);
  const peers = await open({ side, frames, frameBytes, windowBytes: window });
  const { megabytesPerSecond } = await (peers.at(-1) as Peer).next('done');
  for (const peer of peers) peer.stop();
  return megabytesPerSecond;
}

/** Writer first, reader last. Between slots of a process they are the same. */
async function open(run: Run): Promise<Peer[]> {
  const peers = run.side === 'slots' ? [new Peer(0)] : [new Peer(0), new Peer(1)];
  const listening = await Promise.all(peers.map((peer) => peer.next('listening')));
  const addresses = listening.map((one) => (run.side === 'tcp' ? one.tcp : one.grpc));
  // The reader first: a bare socket has nobody who tries again.
  for (const peer of peers.toReversed()) peer.tell({ ...run, addresses });
  return peers;
}

async function stopped(): Promise<{ before: number; after: number }> {
  const peers = await open({ side: 'grpc', frames: 1_000_000, frameBytes: 32 * 1024, windowBytes, stopped: true });
  const writer = peers[0] as Peer;
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const read = async (): Promise<number> => {
    const answer = writer.next('memory');
    writer.tell('memory');
    return (await answer).residentBytes;
  };
  await sleep(2000);
  const before = await read();
  await sleep(5000);
  const after = await read();
  for (const peer of peers) peer.stop();
  return { before, after };
}
