import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, test } from 'vitest';
import { conformanceStartMs, type OpenStateStore, type StateStoreCase } from './conformance-port.ts';
import { hardCases } from './hard-cases.ts';
import { readingCases } from './reading-cases.ts';
import { snapshotCases } from './snapshot-cases.ts';
import { timeCases } from './time-cases.ts';

/** What every state store must do, as functions that throw when it does not. */
export const stateStoreCases: readonly StateStoreCase[] = [
  ...readingCases,
  ...timeCases,
  ...snapshotCases,
  ...hardCases,
];

/** Runs one case on a fresh store. */
export async function runStateStoreCase(one: StateStoreCase, open: OpenStateStore): Promise<void> {
  const clock = new ManualClock(conformanceStartMs);
  const fixture = await open(clock);
  try {
    const { store, generationsInHome = false } = fixture;
    await one.run({ store, clock, another: () => fixture.another(), generationsInHome });
  } finally {
    await fixture.close();
  }
}

/** Registers the conformance suite of state stores with vitest. */
export function stateStoreConformance(name: string, open: OpenStateStore): void {
  describe(`state store ${name}`, () => {
    test.each(stateStoreCases)('$name', async (one) => {
      await expect(runStateStoreCase(one, open)).resolves.toBeUndefined();
    });
  });
}
