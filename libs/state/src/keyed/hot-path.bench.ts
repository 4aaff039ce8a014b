/*
 * What one record pays for its state: `node libs/state/src/keyed/hot-path.bench.ts`. Measures the working set over a memory
 * table; says nothing of stores, batching or the execution controller.
 */
import { systemClock } from '@millrace/kernel';
import { int64, string } from '../codecs/primitives.ts';
import { struct } from '../codecs/struct.ts';
import { map, value } from '../handles/descriptors.ts';
import { keyOf } from '../keys/key-codec.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import type { AccessScope } from './ports.ts';
import { openKeyedState } from './slot-keyed-state.ts';
import { WorkingSet } from './working-set.ts';

const scope: AccessScope = { open: true, enter: () => undefined, leave: () => undefined };
const records = 1_000_000;

const table = await new MemoryStateStore().openTable(
  {
    job: 'bench',
    operator: 'bench',
    subtask: 0,
    keyGroups: { start: 0, end: 127 },
    maxParallelism: 128,
    generation: 1,
  },
  [],
);
const state = await openKeyedState({
  table,
  restored: false,
  shape: {
    total: value(int64),
    user: value(struct({ name: string, visits: int64 })),
    byDay: map(keyOf<number>(), int64),
  },
  workingSet: new WorkingSet({ bytesMax: 256 << 20, clock: systemClock }),
  clock: systemClock,
});

function measure(name: string, record: (i: number) => void): void {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const start = performance.now();
    for (let i = 0; i < records; i++) record(i);
    best = Math.min(best, ((performance.now() - start) * 1e6) / records);
  }
  console.log(`${name}: ${best.toFixed(0)} ns`);
}

function withFacade(key: unknown, work: (facade: ReturnType<typeof state.facade>) => void): void {
  void state.room();
  const entry = state.enter(key);
  work(state.facade(entry, scope));
  state.leave(entry);
}

const keys = Array.from({ length: 50_000 }, (_, i) => `key ${i}`);
const increment = (facade: ReturnType<typeof state.facade>): void => {
  facade.total.set(((facade.total.get() as number | undefined) ?? 0) + 1);
};
measure('value get + set, one hot key', () => withFacade('hot', increment));
measure('value get + set, 1000 keys', (i) => withFacade(keys[i % 1000], increment));
measure('value get + set, 50 000 keys (with write-behind)', (i) => withFacade(keys[i % 50_000], increment));
measure('map get + set, 1000 keys', (i) =>
  withFacade(keys[i % 1000], ({ byDay }) => byDay.set(7, ((byDay.get(7) as number | undefined) ?? 0) + 1)),
);
measure('event timer registered again, 1000 keys', (i) => {
  const entry = state.enter(keys[i % 1000]);
  state.eventTimers.register(entry, 60_000);
  state.leave(entry);
});
