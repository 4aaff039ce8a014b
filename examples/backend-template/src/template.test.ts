/** What every backend owes: register the suite with a way to open the store, and run it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom as random } from '@millrace/kernel';
import type { StateStore } from '@millrace/state';
import { stateStoreConformance } from '@millrace/state/testing';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { createStateBackend } from './index.ts';

stateStoreConformance('template', async (clock) => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-template-'));
  const opened: StateStore[] = [];
  const another = async (): Promise<StateStore> => {
    const store = await createStateBackend({ directory, options: {}, clock, random, telemetry });
    opened.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    close: async () => {
      await Promise.all(opened.map((store) => store.close()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
});

test('an option that the backend does not have is refused by name', () => {
  const clock = { nowMs: () => 0, monotonicMs: () => 0, schedule: () => ({ cancel: () => undefined }) };
  const context = { directory: '', options: { url: 'x' }, clock, random, telemetry };
  expect(() => createStateBackend(context)).toThrow(expect.objectContaining({ code: 'bad-setting' }));
});
