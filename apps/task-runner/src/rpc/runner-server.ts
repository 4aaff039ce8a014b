import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type Clock, MillraceError, type Timer } from '@millrace/kernel';
import {
  addBidi,
  addUnary,
  Exchange,
  endWith,
  frameCodec,
  Health,
  type PullRequest,
  type RpcOptions,
  Runner,
  ServingStatus,
  serverOptions,
} from '@millrace/proto';
import type { Telemetry } from '@millrace/telemetry';
import type { PullStream } from '../exchange/index.ts';
import type { HostedAttempt } from './attempt-calls.ts';
import { AttemptRegistry } from './attempt-registry.ts';

export interface RunnerServerOptions {
  readonly runnerId: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly rpc?: RpcOptions;
}

const helloTimeoutMs = 5000;

/**
 * The gRPC server of a task-runner: the control plane's calls on its attempts, and the streams that other runners pull.
 * Every call names job, generation and runner and is refused when it means another one. Answers health checks, too.
 */
export class RunnerServer {
  readonly #server: Server;
  readonly #attempts: AttemptRegistry;
  readonly #clock: Clock;
  #serving = true;

  constructor(options: RunnerServerOptions) {
    this.#clock = options.clock;
    this.#attempts = new AttemptRegistry(options.runnerId);
    this.#server = new Server(serverOptions(options.rpc));
    this.#serveCalls(options.telemetry);
    const check = async (): Promise<{ status: ServingStatus }> => ({
      status: this.#serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
    });
    addUnary(this.#server, Health, { check }, options.telemetry.tracer);
    addBidi(this.#server, Exchange.method.pull, frameCodec, (stream) => this.#pull(stream));
  }

  /** Binds and serves. `address` is host:port, port 0 for any; resolves to the port. */
  listen(address: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
        if (error === null) return resolve(port);
        reject(new MillraceError('bad-setting', `cannot listen on ${address}: ${error.message}`, { cause: error }));
      });
    });
  }

  /** Makes an attempt reachable, before its exchange opens; the result makes it unreachable again. */
  register(attempt: HostedAttempt): () => void {
    return this.#attempts.register(attempt);
  }

  /** Takes no new call, lets those in flight end for `graceMs`, then cuts what is left. Idempotent. */
  close(graceMs = 2000): Promise<void> {
    this.#serving = false;
    return new Promise((resolve) => {
      const timer = this.#clock.schedule(graceMs, () => {
        this.#server.forceShutdown();
        resolve();
      });
      this.#server.tryShutdown(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #serveCalls(telemetry: Telemetry): void {
    const attempts = this.#attempts;
    addUnary(
      this.#server,
      Runner,
      {
        injectBarrier: async ({ target, checkpoint, stop }, context) => {
          await attempts.find(target).calls.injectBarrier({ checkpoint: Number(checkpoint), stop }, context);
          return {};
        },
        awaitDrain: async ({ target, checkpoint }, context) => {
          const snapshots = await attempts.find(target).calls.awaitDrain(Number(checkpoint), context);
          return { slotSnapshots: snapshots.map((snapshot) => JSON.stringify(snapshot)) };
        },
        completeCheckpoint: async ({ target, checkpoint, last }, context) => {
          await attempts.find(target).calls.completeCheckpoint(Number(checkpoint), last, context);
          return {};
        },
        endInputs: async ({ target }, context) => {
          await attempts.find(target).calls.endInputs(context);
          return {};
        },
        abortCheckpoint: async ({ target, checkpoint }, context) => {
          await attempts.find(target).calls.abortCheckpoint(Number(checkpoint), context);
          return {};
        },
        status: async ({ target }, context) => {
          const stats = await attempts.find(target).calls.status(context);
          return { slotStats: stats.map((slot) => JSON.stringify(slot)) };
        },
      },
      telemetry.tracer,
    );
  }

  /** The first message says who pulls from which attempt; the attempt's exchange takes the stream over from there. */
  #pull(stream: PullStream): void {
    const timer: Timer = this.#clock.schedule(helloTimeoutMs, () => {
      endWith(stream, new MillraceError('rpc-deadline', 'no hello came'));
    });
    stream.once('cancelled', () => timer.cancel());
    stream.once('end', () => timer.cancel());
    stream.once('data', (request: PullRequest) => {
      timer.cancel();
      try {
        if (request.kind.case !== 'hello') throw new MillraceError('bad-argument', 'the first message must be a hello');
        this.#attempts.find(request.kind.value).exchange.accept(request.puller, stream);
      } catch (error) {
        endWith(stream, error);
      }
    });
  }
}
