import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import { z } from 'zod';
import type { AwaitRunningInput, RunnerAddress } from './contract.ts';
import type { RunnerClients } from './runner-clients.ts';
import type { StepScope } from './scope.ts';

const intervalMs = 20;
const callTimeoutMs = 1_000;
/** How long the first record is waited for when every slot is open. */
const firstRecordMs = 1_000;

/** What is read here of a SlotStats (@millrace/streams). */
const slotStats = z.looseObject({ subtask: z.int(), recordsIn: z.number() });

export interface LookDeps {
  readonly runners: RunnerClients;
  readonly clock: Clock;
}

/**
 * Waits until every subtask of the attempt is open and one has read a record, or none has for a second. A slot tells its
 * figures only when it is restored, connected and running. Calls that fail are made again: whether the attempt lives is
 * for others to say.
 */
export async function awaitRunning(
  input: AwaitRunningInput,
  { runners, clock }: LookDeps,
  scope: StepScope,
): Promise<{ readonly atMs: number }> {
  let openAtMs: number | undefined;
  for (;;) {
    scope.signal.throwIfAborted();
    const open = await askSlots(input, runners, scope).catch(() => new Map<number, number>());
    const nowMs = clock.nowMs();
    if (open.size === input.parallelism) {
      openAtMs ??= nowMs;
      if ([...open.values()].some((records) => records > 0)) return { atMs: nowMs };
      if (nowMs - openAtMs >= firstRecordMs) return { atMs: openAtMs };
    }
    await sleep(clock, intervalMs, scope.signal);
  }
}

/** Records read by each subtask that is open. */
async function askSlots(
  { id, generation, runners: all }: AwaitRunningInput,
  clients: RunnerClients,
  scope: StepScope,
): Promise<Map<number, number>> {
  const answers = await clients.each(all, (client, { runnerId }) => {
    const target = { job: id, generation: BigInt(generation), runnerId };
    return client.call.status({ target }, { timeoutMs: callTimeoutMs, signal: scope.signal });
  });
  const slots = answers.flatMap((answer) => answer.slotStats).map((text) => slotStats.parse(JSON.parse(text)));
  return new Map(slots.map((slot) => [slot.subtask, slot.recordsIn]));
}

/** Those of the runners that answer as themselves; that they host nothing of the named attempt is no matter. */
export async function liveRunners(
  all: readonly RunnerAddress[],
  { runners }: Pick<LookDeps, 'runners'>,
  scope: StepScope,
): Promise<readonly string[]> {
  const isAlive = async (runner: RunnerAddress): Promise<readonly string[]> => {
    const target = { job: '', generation: 0n, runnerId: runner.runnerId };
    try {
      await runners.each([runner], (client) =>
        client.call.status({ target }, { timeoutMs: callTimeoutMs, signal: scope.signal }),
      );
    } catch (error) {
      if (MillraceError.from(error).code !== 'attempt-unknown') return [];
    }
    return [runner.runnerId];
  };
  return (await Promise.all(all.map(isAlive))).flat();
}
