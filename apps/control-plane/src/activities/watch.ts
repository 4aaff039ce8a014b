import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import type { RunnerAddress, WatchInput } from './contract.ts';
import type { RunnerClients } from './runner-clients.ts';
import type { StepScope } from './scope.ts';

const intervalMs = 500;
const callTimeoutMs = 1_000;

/**
 * Asks every runner of an attempt how it is, twice a second, until one is lost: silent for `silenceMaxMs`, or another
 * process answers at its address. That the runner hosts the attempt is not asked here: it reports its own end.
 * This finds a dead runner within seconds although the heartbeats of `runAttempt` may pause for as long as an outage of
 * Temporal lasts.
 */
export async function watchRunners(
  input: WatchInput,
  deps: { readonly runners: RunnerClients; readonly clock: Clock },
  scope: StepScope,
): Promise<never> {
  const { clock } = deps;
  const heard = new Map(input.runners.map((runner) => [runner.runnerId, clock.monotonicMs()]));
  for (;;) {
    await Promise.all(input.runners.map((runner) => ask(runner, heard)));
    scope.signal.throwIfAborted();
    await sleep(clock, intervalMs, scope.signal);
  }

  async function ask(runner: RunnerAddress, times: Map<string, number>): Promise<void> {
    const target = { job: input.id, generation: BigInt(input.generation), runnerId: runner.runnerId };
    try {
      await deps.runners.each([runner], (client) =>
        client.call.status({ target }, { timeoutMs: callTimeoutMs, signal: scope.signal }),
      );
    } catch (error) {
      const e = MillraceError.from(error);
      if (e.code === 'runner-lost') throw e;
      if (e.code === 'rpc-unavailable' || e.code === 'rpc-deadline') {
        const silentMs = clock.monotonicMs() - (times.get(runner.runnerId) ?? 0);
        if (silentMs < input.silenceMaxMs) return;
        throw lost(runner, `no answer for ${Math.round(silentMs)} ms: ${e.message}`);
      }
    }
    times.set(runner.runnerId, clock.monotonicMs());
  }
}

function lost(runner: RunnerAddress, why: string): MillraceError {
  return new MillraceError('runner-lost', `Runner ${runner.runnerId} at ${runner.address} is lost: ${why}`, {
    details: { runnerId: runner.runnerId, address: runner.address },
  });
}
