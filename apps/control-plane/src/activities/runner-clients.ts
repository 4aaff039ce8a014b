import { MillraceError, Semaphore } from '@millrace/kernel';
import { Runner, type UnaryClient, unaryClient } from '@millrace/proto';
import type { RunnerAddress } from './contract.ts';

export type RunnerClient = UnaryClient<typeof Runner>;

/** Calls in flight to all runners of one step. */
const fanOutMax = 64;
/** Idle connections kept; the least recently used is closed beyond. */
const clientsMax = 1024;

/** Connections to runners, one per address, shared by all activities of this process. */
export class RunnerClients {
  readonly #clients = new Map<string, RunnerClient>();

  /** Calls every runner, some at a time; rejects with the first failure after all have settled. */
  async each<T>(
    runners: readonly RunnerAddress[],
    work: (client: RunnerClient, runner: RunnerAddress) => Promise<T>,
  ): Promise<readonly T[]> {
    const limit = new Semaphore(fanOutMax);
    const settled = await Promise.allSettled(
      runners.map((runner) =>
        limit.run(async () => {
          try {
            return await work(this.#client(runner.address), runner);
          } catch (error) {
            throw ofRunner(error, runner);
          }
        }),
      ),
    );
    return settled.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  #client(address: string): RunnerClient {
    const known = this.#clients.get(address);
    if (known !== undefined) {
      this.#clients.delete(address);
      this.#clients.set(address, known);
      return known;
    }
    const client = unaryClient(Runner, address);
    this.#clients.set(address, client);
    if (this.#clients.size > clientsMax) {
      const [oldest, idle] = this.#clients.entries().next().value as [string, RunnerClient];
      this.#clients.delete(oldest);
      idle.close();
    }
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }
}

/**
 * A runner that refuses the attempt (a newer one runs there, or another process answers at the address) is a lost
 * runner: whether the job itself is fenced is for its record to say.
 */
function ofRunner(error: unknown, runner: RunnerAddress): MillraceError {
  const e = MillraceError.from(error);
  if (e.code !== 'attempt-fenced' && e.code !== 'runner-mismatch') return e;
  const message = `Runner ${runner.runnerId} (${runner.address}) is not there for the attempt any more: ${e.message}`;
  return new MillraceError('runner-lost', message, { details: { runnerId: runner.runnerId, address: runner.address } });
}
