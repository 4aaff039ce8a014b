/** A backend as somebody else would write one: the smallest there is. */
import { type CreateStateBackend, MemoryStateStore } from '@millrace/state';

export const createStateBackend: CreateStateBackend = ({ clock, options }) => {
  const store = new MemoryStateStore(clock);
  return {
    name: String(options['name']),
    openTable: (spec, restore) => store.openTable(spec, restore),
    close: () => store.close(),
  };
};
