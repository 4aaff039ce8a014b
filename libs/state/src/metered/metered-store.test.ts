import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry, type Telemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { MemoryStateStore, meteredStore, packKeys } from '../index.ts';
import { stateStoreConformance } from '../testing/index.ts';
import { batchOf, keyIn, specOf, text } from '../testing/table-driver.ts';

stateStoreConformance('memory, counted', async (clock) => {
  const open = () => meteredStore(new MemoryStateStore(clock), { clock, telemetry: noTelemetry });
  const stores = [open()];
  return {
    store: stores[0] as (typeof stores)[number],
    another: async () => {
      const store = open();
      stores.push(store);
      return store;
    },
    close: async () => void (await Promise.all(stores.map((store) => store.close()))),
  };
});

test('reads, reads of nothing, writes, deletes and seeks are counted, timed and weighed', async () => {
  const clock = new ManualClock(0);
  const gauges = new Map<string, () => number>();
  const timed: string[] = [];
  const telemetry: Telemetry = {
    ...noTelemetry,
    metrics: {
      ...noTelemetry.metrics,
      gauge: (name, _help, read) => {
        gauges.set(name, read);
        return () => void gauges.delete(name);
      },
      histogram: () => ({ record: (_value, labels) => void timed.push(String(labels?.['kind'])) }),
    },
  };
  const store = meteredStore(new MemoryStateStore(clock), { clock, telemetry });
  const table = await store.openTable(specOf(), []);
  await table.write(
    batchOf([
      [keyIn(1, 'a'), '12345'],
      [keyIn(1, 'b'), undefined],
    ]),
  );
  await table.multiGet(packKeys([keyIn(1, 'a'), keyIn(1, 'x')]));
  table.peek(keyIn(1, 'y'), 0, keyIn(1, 'y').length, { bytes: text(''), start: 0, end: 0 });
  for await (const page of table.scan({ start: text('') })) expect(page.keys.count).toBe(1);
  await table.snapshot(1);
  const figures = Object.fromEntries([...gauges].map(([name, read]) => [name.replace('millrace_state_', ''), read()]));
  expect(figures).toEqual({
    reads: 3,
    read_nulls: 2,
    read_bytes: 10,
    read_requests: 1,
    writes: 2,
    deletes: 1,
    written_bytes: expect.any(Number) as number,
    write_requests: 1,
    seeks: 1,
  });
  expect(timed).toEqual(['write', 'read', 'seek', 'snapshot']);
  await table.close();
  expect(gauges.size).toBe(0);
});
