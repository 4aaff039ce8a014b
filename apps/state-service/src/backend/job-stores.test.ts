import { MillraceError } from '@millrace/kernel';
import { MemoryStateStore } from '@millrace/state';
import { expect, it } from 'vitest';
import { specOf } from '../testing/table-driver.ts';
import { JobStores } from './job-stores.ts';

function stores(): { all: JobStores; log: string[]; fail: (error: Error | undefined) => void } {
  const log: string[] = [];
  let failure: Error | undefined;
  const all = new JobStores({
    name: 'memory',
    open: async (job, generation) => {
      log.push(`open ${job} ${generation}`);
      if (failure !== undefined) throw failure;
      const store = new MemoryStateStore();
      return {
        store,
        close: async () => {
          log.push(`close ${job} ${generation}`);
          await store.close();
        },
      };
    },
  });
  return { all, log, fail: (error) => (failure = error) };
}

it('an attempt has one store, from its first table to its last', async () => {
  const { all, log } = stores();
  const [a, b] = await Promise.all([all.openTable(specOf(), []), all.openTable(specOf({ operator: 'two' }), [])]);
  const next = await all.openTable(specOf({ generation: 2 }), []);
  expect(log).toEqual(['open job 1', 'open job 2']);
  await a.close();
  await a.close();
  expect(log).toHaveLength(2);
  await b.close();
  expect(log.at(-1)).toBe('close job 1');
  await all.openTable(specOf(), []);
  expect(log.at(-1)).toBe('open job 1');
  await all.close();
  expect(log.slice(-2).toSorted()).toEqual(['close job 1', 'close job 2']);
  await expect(next.snapshot(1)).rejects.toMatchObject({ code: 'state-table-closed' });
  await expect(all.openTable(specOf({ generation: 3 }), [])).rejects.toMatchObject({ code: 'state-table-closed' });
});

it('a store that could not be opened is tried again by the next table', async () => {
  const { all, log, fail } = stores();
  fail(new MillraceError('dfs-unavailable', 'no answer'));
  await expect(all.openTable(specOf(), [])).rejects.toMatchObject({ code: 'dfs-unavailable' });
  fail(undefined);
  await (await all.openTable(specOf(), [])).close();
  expect(log).toEqual(['open job 1', 'open job 1', 'close job 1']);
});
