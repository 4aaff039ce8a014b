import type { Dfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { type Clock, type Random, sleep } from '@millrace/kernel';

export interface Unreliability {
  /** Chance that a request fails, half of them after its effect. */
  readonly faultChance: number;
  /** Chance that a request stalls for up to `stallMs`, before or after its effect. */
  readonly stallChance: number;
  readonly stallMs: number;
}

/** A process's own way to a shared store: random latency, lost requests and answers, long stalls, in simulated time. */
export function unreliable(store: Dfs, clock: Clock, random: Random, unreliability: Unreliability): FaultyDfs {
  const { faultChance, stallChance, stallMs } = unreliability;
  const dfs = new FaultyDfs(store, {
    delay: () => sleep(clock, random.float() < stallChance ? random.below(stallMs) : random.below(4)),
  });
  dfs.failWhen(() => random.float() < faultChance / 2, 'before');
  dfs.failWhen(() => random.float() < faultChance / 2, 'after');
  return dfs;
}
