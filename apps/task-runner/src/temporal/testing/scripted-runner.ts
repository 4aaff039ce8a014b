import { Server, ServerCredentials } from '@grpc/grpc-js';
import { systemClock, systemRandom } from '@millrace/kernel';
import { addUnary, Runner, serverOptions } from '@millrace/proto';
import { noTelemetry } from '@millrace/telemetry';
import { RunnerWorker, type RunnerWorkerOptions } from '../runner-worker.ts';
import { type ScriptedAttempt, ScriptedHost } from './scripted-host.ts';

export interface ScriptedRunner {
  readonly id: string;
  readonly host: ScriptedHost;
  readonly worker: RunnerWorker;
  /** Cuts the gRPC server off, as a dead process would. */
  disappear(): void;
  stop(): Promise<void>;
}

export type ScriptedRunnerOptions = { readonly address: string; readonly id: string; readonly slots: number } & Partial<
  Pick<RunnerWorkerOptions, 'leaseMs' | 'heartbeatMs' | 'unreachableMaxMs' | 'namespace'>
> & { readonly onStart?: (attempt: ScriptedAttempt) => void };

/** The real Temporal side of a runner, over scripted slots. */
export async function startScriptedRunner(options: ScriptedRunnerOptions): Promise<ScriptedRunner> {
  const { address, id, slots, namespace = 'default', onStart, ...rest } = options;
  const host = new ScriptedHost(id, onStart);
  const server = new Server(serverOptions());
  addUnary(server, Runner, host.handlers(), noTelemetry.tracer);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const worker = new RunnerWorker({
    ...rest,
    address,
    namespace,
    runnerId: id,
    grpcAddress: `127.0.0.1:${port}`,
    slots,
    host,
    clock: systemClock,
    random: systemRandom,
    telemetry: noTelemetry,
  });
  worker.start();
  return {
    id,
    host,
    worker,
    disappear: () => server.forceShutdown(),
    stop: async () => {
      await worker.stop();
      server.forceShutdown();
    },
  };
}
