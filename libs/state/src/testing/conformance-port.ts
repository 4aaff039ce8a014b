import type { ManualClock } from '@millrace/kernel/testing';
import type { StateStore } from '../store.ts';

/** One store under test, with the durable home behind it. */
export interface StateStoreFixture {
  readonly store: StateStore;
  /**
   * A store as another process would have it: nothing but the durable home is common with the ones before. Stores that
   * keep generations in the home must fence across it.
   */
  another(): Promise<StateStore>;
  /** Whether the home knows the newest generation, so that older ones are fenced in every process. Default: false. */
  readonly generationsInHome?: boolean;
  close(): Promise<void>;
}

/** Makes a fixture with an empty home; the store's time is `clock`. */
export type OpenStateStore = (clock: ManualClock) => Promise<StateStoreFixture>;

/** What a case works with. */
export interface CaseContext {
  readonly store: StateStore;
  readonly clock: ManualClock;
  readonly another: () => Promise<StateStore>;
  readonly generationsInHome: boolean;
}

/** A named check that throws when a store does not keep its promise. */
export interface StateStoreCase {
  readonly name: string;
  run(context: CaseContext): Promise<void>;
}

export const conformanceStartMs = 1_700_000_000_000;
