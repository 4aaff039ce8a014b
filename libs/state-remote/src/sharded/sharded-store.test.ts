import { MemoryStateStore, type StateStore } from '@millrace/state';
import { stateStoreConformance } from '@millrace/state/testing';
import { expect, it } from 'vitest';
import { openShardedStore } from '../index.ts';
import { Placement } from './placement.ts';

/** Three instances; another process finds the same ones, as new stores: memory handles hold their state themselves. */
stateStoreConformance('memory on three instances', async (clock) => {
  const stores: StateStore[] = [];
  const another = async (): Promise<StateStore> => {
    const store = openShardedStore(['a', 'b', 'c'].map((name) => ({ name, store: new MemoryStateStore(clock) })));
    stores.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    close: async () => void (await Promise.all(stores.map((store) => store.close()))),
  };
});

it('every instance serves its share of the key groups, whatever the order of the list', () => {
  const placement = new Placement(['a', 'b', 'c', 'd'], 128);
  const counts = [0, 0, 0, 0];
  const again = new Placement(['d', 'b', 'a', 'c'], 128);
  for (let keyGroup = 0; keyGroup < 128; keyGroup++) {
    counts[placement.owner(keyGroup)] = (counts[placement.owner(keyGroup)] ?? 0) + 1;
    expect(again.names[again.owner(keyGroup)]).toBe(placement.names[placement.owner(keyGroup)]);
  }
  expect(Math.min(...counts)).toBeGreaterThan(16);
});

it('an instance more takes key groups from the others and moves none between them', () => {
  const before = new Placement(['a', 'b', 'c'], 1024);
  const after = new Placement(['a', 'b', 'c', 'd'], 1024);
  let moved = 0;
  for (let keyGroup = 0; keyGroup < 1024; keyGroup++) {
    const [was, is] = [before.names[before.owner(keyGroup)], after.names[after.owner(keyGroup)]];
    if (was === is) continue;
    moved++;
    expect(is).toBe('d');
  }
  expect(moved).toBeGreaterThan(150);
  expect(moved).toBeLessThan(360);
});

it('state stays with the instances that it was laid on: a list without one of them is refused, a longer one is not', async () => {
  const named = (...names: readonly string[]) => names.map((name) => ({ name, store: new MemoryStateStore() }));
  const keyGroups = { start: 0, end: 127 };
  const spec = { job: 'job', operator: 'count', subtask: 0, keyGroups, maxParallelism: 128, generation: 1 };
  const handle = await (await openShardedStore(named('a', 'b')).openTable(spec, [])).snapshot(1);
  const refused = { code: 'state-service-list', message: expect.stringContaining('it lies on a, b') as string };
  await expect(openShardedStore(named('a', 'c')).openTable(spec, [handle])).rejects.toMatchObject(refused);
  await expect(openShardedStore(named('a', 'b', 'c')).openTable(spec, [handle])).resolves.toBeDefined();
});
