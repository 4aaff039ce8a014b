import type { JobHandle } from '@millrace/client';
import type { Random } from '@millrace/kernel';
import { eventually, registeredRounds, type TestStack } from './test-stack.ts';

export interface KillRunners {
  readonly run: TestStack;
  readonly job: JobHandle;
  readonly kills: number;
  readonly runners: number;
  readonly random: Random;
  /** Longest time between the first checkpoint of an attempt and the kill. Default 3 s. */
  readonly delayMaxMs?: number;
}

/**
 * `kill -9` of a random runner, again and again, each time at a random moment after the attempt's first checkpoint; waits
 * for the next generation in between. Resolves with the kills done: fewer when the job finished before.
 */
export async function killRunners(options: KillRunners): Promise<number> {
  const { run, job, kills, runners, random } = options;
  for (let done = 0; done < kills; done++) {
    const before = await eventually('a checkpoint of the attempt', 120_000, async () => {
      const status = await job.status();
      if (status.state === 'finished') return status;
      const rounds = await registeredRounds(job);
      return status.state === 'running' && rounds.length > 0 ? status : undefined;
    });
    await new Promise((resolve) => setTimeout(resolve, random.below(options.delayMaxMs ?? 3000)));
    if ((await job.status()).state === 'finished') return done;
    run.kill(`task-runner-${1 + random.below(runners)}`);
    await eventually('a new generation that runs', 120_000, async () => {
      const status = await job.status();
      if (status.state === 'finished') return true;
      return status.state === 'running' && status.generation > before.generation ? true : undefined;
    });
  }
  return kills;
}
