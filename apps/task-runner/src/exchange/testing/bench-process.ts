/**
 * One side of the bench `exchange` (tools/bench): a process with the server and the bridge of a task-runner and a thread for
 * each of its slots; or a bare socket. Argument: its index, 0 = writer. Commands and reports by IPC.
 */
import { connect, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { systemClock as clock, SeededRandom } from '@millrace/kernel';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { type AttemptCalls, RunnerServer } from '../../rpc/index.ts';
import { ExchangeBridge } from '../exchange-bridge.ts';
import { exchangeLayout } from '../layout.ts';
import type { BenchSlotData } from './bench-slot.ts';

export interface BenchRun {
  readonly side: 'tcp' | 'grpc' | 'slots';
  readonly frames: number;
  readonly frameBytes: number;
  readonly windowBytes: number;
  /** The reader takes nothing. */
  readonly stopped?: boolean;
  /** host:port of each process. */
  readonly addresses: readonly string[];
}

const index = Number(process.argv[2]);
const runnerId = `r${index}`;
const server = new RunnerServer({ runnerId, clock, telemetry });
const sockets = createServer({ noDelay: true });
const noCalls: AttemptCalls = {
  injectBarrier: async () => undefined,
  endInputs: async () => undefined,
  awaitDrain: async () => [],
  completeCheckpoint: async () => undefined,
  abortCheckpoint: async () => undefined,
  status: async () => [],
};

function done(frames: number, frameBytes: number, durationMs: number): void {
  process.send?.({ kind: 'done', megabytesPerSecond: ((frames - 1) * frameBytes) / durationMs / 1000 });
}

async function overExchange(run: BenchRun): Promise<void> {
  const slots = [0, 1].map((slot) => {
    const at = run.side === 'slots' ? 0 : slot;
    return { runnerId: `r${at}`, address: run.addresses[at] as string, lease: '' };
  });
  const layout = exchangeLayout({ slots }, runnerId);
  const { windowBytes } = run;
  const random = new SeededRandom(1);
  const place = { job: 'bench', generation: 1 };
  const bridge = new ExchangeBridge({
    ...place,
    runnerId,
    layout,
    channelWindowBytes: windowBytes,
    clock,
    random,
    telemetry,
  });
  for (const slot of layout.slots) {
    const data: BenchSlotData = { slot, ports: bridge.ports(slot), run };
    const worker = new Worker(new URL('./bench-slot.ts', import.meta.url), {
      workerData: data,
      transferList: [...data.ports.values()],
    });
    worker.on('message', (durationMs: number) => done(run.frames, run.frameBytes, durationMs));
  }
  server.register({ ...place, calls: noCalls, exchange: bridge });
  await bridge.open();
}

/** Length and payload, as little as a protocol can be; the writer waits for the drain. */
function writeTcp(run: BenchRun): void {
  const [host, port] = (run.addresses[1] as string).split(':') as [string, string];
  const socket = connect({ host, port: Number(port), noDelay: true });
  let sent = 0;
  const write = (): void => {
    while (sent < run.frames) {
      sent++;
      const head = Buffer.allocUnsafe(4);
      head.writeUInt32LE(run.frameBytes);
      const frame = new Uint8Array(run.frameBytes);
      frame[0] = 1;
      socket.write(head);
      if (!socket.write(frame)) return;
    }
  };
  socket.on('drain', write);
  socket.on('connect', write);
}

function readTcp(run: BenchRun, socket: Socket): void {
  const wanted = run.frames * (run.frameBytes + 4);
  let startMs = 0;
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    if (bytes === 0) startMs = performance.now();
    bytes += chunk.length;
    if (bytes === wanted) done(run.frames, run.frameBytes, performance.now() - startMs);
  });
}

process.on('message', (command: BenchRun | 'memory') => {
  if (command === 'memory') process.send?.({ kind: 'memory', residentBytes: process.memoryUsage().rss });
  else if (command.side !== 'tcp') void overExchange(command);
  else if (index === 0) writeTcp(command);
  else sockets.on('connection', (socket) => readTcp(command, socket));
});
process.on('disconnect', () => process.exit(0));
const grpc = await server.listen('127.0.0.1:0');
sockets.listen(0, '127.0.0.1', () => {
  const tcp = (sockets.address() as { readonly port: number }).port;
  process.send?.({ kind: 'listening', tcp: `127.0.0.1:${tcp}`, grpc: `127.0.0.1:${grpc}` });
});
