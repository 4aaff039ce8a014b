import { WorkingSet } from '@millrace/state';
import type { SlotContext } from '../runtime/slot.ts';

/** More decoded entries than the processor's caches hold cost more than decoding them anew. */
const decodedBytesMax = 1024 * 1024;

const sets = new WeakMap<SlotContext, WorkingSet>();

/** The working set of a slot: one for all its operators and states, made when the first of them asks. */
export function workingSetOf(slot: SlotContext): WorkingSet {
  let set = sets.get(slot);
  if (set === undefined) {
    const { workingSetBytes } = slot.settings;
    const bytesMax = Math.min(decodedBytesMax, workingSetBytes / 4);
    set = new WorkingSet({ bytesMax, cacheBytesMax: workingSetBytes - bytesMax, clock: slot.clock });
    sets.set(slot, set);
  }
  return set;
}
