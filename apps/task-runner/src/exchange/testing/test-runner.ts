import { Worker } from 'node:worker_threads';
import { type Clock, MillraceError, SeededRandom, systemClock } from '@millrace/kernel';
import type { ClaimedSlot } from '@millrace/proto';
import { noTelemetry } from '@millrace/telemetry';
import { type AttemptCalls, RunnerServer } from '../../rpc/index.ts';
import { ExchangeBridge } from '../exchange-bridge.ts';
import { exchangeLayout } from '../layout.ts';
import type { SlotWorkerCommand, SlotWorkerData, SlotWorkerReport } from './slot-worker.fixture.ts';
import type { Traffic } from './traffic.ts';

const noCalls: AttemptCalls = {
  injectBarrier: async () => undefined,
  endInputs: async () => undefined,
  awaitDrain: async () => [],
  completeCheckpoint: async () => undefined,
  abortCheckpoint: async () => undefined,
  status: async () => [],
};

/** A runner of the tests: a real server, a real bridge, and a real worker thread per slot. */
export class TestRunner {
  readonly runnerId: string;
  readonly #clock: Clock = systemClock;
  readonly server: RunnerServer;
  address = '';
  bridge: ExchangeBridge | undefined;
  broken: MillraceError | undefined;
  readonly workers = new Map<number, Worker>();
  readonly reports: { readonly slot: number; readonly report: SlotWorkerReport }[] = [];

  constructor(runnerId: string) {
    this.runnerId = runnerId;
    this.server = new RunnerServer({ runnerId, clock: this.#clock, telemetry: noTelemetry });
  }

  async listen(): Promise<ClaimedSlot> {
    this.address = `127.0.0.1:${await this.server.listen('127.0.0.1:0')}`;
    return { runnerId: this.runnerId, address: this.address, lease: '' };
  }

  /** Deploys the attempt; resolves when its exchange is open on all sides, or broken. */
  async deploy(slots: readonly ClaimedSlot[], generation: number, traffic: Traffic, timeoutMs = 20_000): Promise<void> {
    const layout = exchangeLayout({ slots }, this.runnerId);
    const bridge = new ExchangeBridge({
      job: 'job',
      generation,
      runnerId: this.runnerId,
      layout,
      channelWindowBytes: traffic.windowBytes,
      connectTimeoutMs: timeoutMs,
      clock: this.#clock,
      random: new SeededRandom(traffic.seed),
      telemetry: noTelemetry,
      onBroken: (error) => {
        this.broken = error;
      },
    });
    this.bridge = bridge;
    for (const slot of layout.slots) this.#startSlot(bridge, slot, traffic);
    this.server.register({ job: 'job', generation, calls: noCalls, exchange: bridge });
    await bridge.open();
  }

  tell(slot: number, command: SlotWorkerCommand): void {
    this.workers.get(slot)?.postMessage(command);
  }

  of<K extends SlotWorkerReport['kind']>(kind: K): Extract<SlotWorkerReport, { kind: K }>[] {
    return this.reports.map(({ report }) => report).filter((report) => report.kind === kind) as never;
  }

  async stop(): Promise<void> {
    await this.bridge?.close(new MillraceError('cancelled', 'the test is over'));
    await Promise.all([...this.workers.values()].map((worker) => worker.terminate()));
    await this.server.close(100);
  }

  #startSlot(bridge: ExchangeBridge, slot: number, traffic: Traffic): void {
    const ports = bridge.ports(slot);
    const data: SlotWorkerData = { slot, ports, traffic };
    const worker = new Worker(new URL('./slot-worker.fixture.ts', import.meta.url), {
      workerData: data,
      transferList: [...ports.values()],
      execArgv: [],
    });
    worker.on('message', (report: SlotWorkerReport) => this.reports.push({ slot, report }));
    worker.on('error', (error) => this.reports.push({ slot, report: { kind: 'fault', text: String(error) } }));
    this.workers.set(slot, worker);
  }
}
