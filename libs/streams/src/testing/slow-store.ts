import type { Clock, MaybePromise, Random } from '@millrace/kernel';
import { sleep } from '@millrace/kernel';
import type { StateStore, StateTable } from '@millrace/state';

/**
 * A store behind a network: never answers at once, and each answer takes its own time. Brings out what a handler or an
 * operator does wrongly when its state is not at hand.
 */
export class SlowStore implements StateStore {
  readonly name: string;
  readonly #store: StateStore;
  readonly #wait: () => Promise<void>;

  constructor(store: StateStore, clock: Clock, random: Random, delayMsMax = 3) {
    this.name = store.name;
    this.#store = store;
    this.#wait = () => sleep(clock, random.below(delayMsMax + 1));
  }

  async openTable(...args: Parameters<StateStore['openTable']>): Promise<StateTable> {
    return slow(await this.#store.openTable(...args), this.#wait);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

function slow(table: StateTable, wait: () => Promise<void>): StateTable {
  return {
    spec: table.spec,
    peek: () => 'unknown',
    multiGet: (...args) => later(table.multiGet(...args), wait),
    write: (batch) => table.write(batch),
    async *scan(range, parent) {
      const pages = table.scan(range, parent);
      await wait();
      yield* pages;
    },
    snapshot: (...args) => later(table.snapshot(...args), wait),
    stats: () => table.stats(),
    close: () => table.close(),
  };
}

/** The answer is that of the time of the call; only its way takes long. */
async function later<T>(answer: MaybePromise<T>, wait: () => Promise<void>): Promise<T> {
  const result = await answer;
  await wait();
  return result;
}
