import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { inlineExecutor } from '@millrace/lsm';
import type { StateStore } from '@millrace/state';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { expect, it } from 'vitest';
import { serveStore } from '../testing/served-store.ts';
import { batchOf, scanText, specOf } from '../testing/table-driver.ts';
import { lsmBackend } from './compose.ts';

it('a job moves between a store behind a service and the same store embedded', async () => {
  const home = mkdtempSync(join(tmpdir(), 'millrace-move-'));
  const dfs = await openDfs(`file://${home}?fsync=false`, { clock, random, telemetry });
  const open = (): StateStore =>
    lsmBackend({
      dfs,
      random,
      clock,
      systemClock: clock,
      telemetry,
      cacheBytes: 1 << 20,
      memtableBytes: 1 << 16,
      executor: ({ files }) => inlineExecutor(files),
    });
  const first = await serveStore(open());
  const embedded = open();
  const second = await serveStore(open());
  try {
    const remote = await first.client.openTable(specOf(), []);
    await remote.write(batchOf({ a: 'A', b: 'B' }));
    const local = await embedded.openTable(specOf({ generation: 2 }), [await remote.snapshot(1)]);
    await local.write(batchOf({ b: 'B2' }));
    const again = await second.client.openTable(specOf({ generation: 3 }), [await local.snapshot(2)]);
    expect(await scanText(again)).toEqual({ a: 'A', b: 'B2' });
  } finally {
    await Promise.all([first.close(), embedded.close(), second.close()]);
    rmSync(home, { recursive: true, force: true });
  }
});
