import { MemoryDfs } from '@millrace/dfs';
import { FaultyDfs } from '@millrace/dfs/testing';
import { type Clock, type Random, SeededRandom, sleep } from '@millrace/kernel';
import type { Balances } from './bank.ts';
import { WatchedStore } from './watched-store.ts';

/** How unreliable the way of a process to the store is. */
export interface Weather {
  /** Chance that a request fails, half of them after its effect. */
  readonly faultChance: number;
  /** Chance that a request is held up for up to `stallMs`, before or after its effect. */
  readonly stallChance: number;
  readonly stallMs: number;
}

/** What has happened; each simulation says what must have. */
export interface Tally {
  registered: number;
  aborted: number;
  fenced: number;
  crashed: number;
  checked: number;
  swept: number;
  collected: number;
  forked: number;
  forksAbandoned: number;
  deleted: number;
}

/** All that the processes of one simulation share. */
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly memory: MemoryDfs;
  readonly store: WatchedStore;
  /** Balances at each checkpoint ever begun, by its path; of forks, too. */
  readonly expected: Map<string, Balances>;
  readonly tally: Tally;
  /** A process's own way to the store. */
  connect(): FaultyDfs;
  /** Ends all faults and stalls that have not begun. */
  calm(): void;
}

export function newWorld(seed: number, clock: Clock, weather?: Weather): World {
  const random = new SeededRandom(seed);
  const memory = new MemoryDfs(clock);
  const store = new WatchedStore(memory);
  const connected: FaultyDfs[] = [];
  let current = weather;
  const delayMs = (): number => {
    if (current === undefined) return random.below(4);
    return random.float() < current.stallChance ? random.below(current.stallMs) : random.below(4);
  };
  return {
    clock,
    random,
    memory,
    store,
    expected: new Map(),
    tally: {
      registered: 0,
      aborted: 0,
      fenced: 0,
      crashed: 0,
      checked: 0,
      swept: 0,
      collected: 0,
      forked: 0,
      forksAbandoned: 0,
      deleted: 0,
    },
    connect: () => {
      const dfs = new FaultyDfs(store.connect(), weather === undefined ? {} : { delay: () => sleep(clock, delayMs()) });
      const chance = (weather?.faultChance ?? 0) / 2;
      if (current !== undefined) {
        dfs.failWhen(() => random.float() < chance, 'before');
        dfs.failWhen(() => random.float() < chance, 'after');
      }
      connected.push(dfs);
      return dfs;
    },
    calm: () => {
      current = undefined;
      for (const dfs of connected) dfs.heal();
    },
  };
}
