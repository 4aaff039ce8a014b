import { WorkingSet } from '@millrace/state';
import type { SlotContext } from '../runtime/slot.ts';

const sets = new WeakMap<SlotContext, WorkingSet>();

/** The working set of a slot: one for all its operators and states, made when the first of them asks. */
export function workingSetOf(slot: SlotContext): WorkingSet {
  let set = sets.get(slot);
  if (set === undefined) {
    set = new WorkingSet({ bytesMax: slot.settings.workingSetBytes });
    sets.set(slot, set);
  }
  return set;
}
