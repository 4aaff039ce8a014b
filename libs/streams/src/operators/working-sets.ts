import { WorkingSet } from '@millrace/state';
import type { SlotContext } from '../runtime/slot.ts';

/** More decoded entries than the processor's caches hold cost more than decoding them anew. */
const decodedBytesMax = 1024 * 1024;

const sets = new WeakMap<SlotContext, WorkingSet>();

/** The working set of a slot: one for all its operators and states, made when the first of them asks. */
export function workingSetOf(slot: SlotContext): WorkingSet {
  let set = sets.get(slot);
  if (set === undefined) {
    const { workingSetBytes, existenceBytes = 0 } = slot.settings;
    const bytesMax = Math.min(decodedBytesMax, workingSetBytes / 4);
    const cacheBytesMax = workingSetBytes - bytesMax;
    set = new WorkingSet({ bytesMax, cacheBytesMax, existenceBytesMax: existenceBytes, clock: slot.clock });
    observe(set, slot);
    sets.set(slot, set);
  }
  return set;
}

function observe({ cache, existence }: WorkingSet, { telemetry: { metrics } }: SlotContext): void {
  metrics.gauge('millrace_state_cache_hits', 'Looks for a stored value that the slot has at hand', () => cache.hits);
  metrics.gauge('millrace_state_cache_misses', 'Looks for one that it has not', () => cache.misses);
  metrics.gauge('millrace_state_cache_bytes', 'Stored values at hand, outside of the heap', () => cache.bytes);
  if (!existence.isOn) return;
  const stats = (): typeof existence.stats => existence.stats;
  metrics.gauge('millrace_existence_absent', 'Reads of nothing that needed no request', () => stats().absent);
  metrics.gauge(
    'millrace_existence_unknown',
    'Reads that the filter could not tell anything of',
    () => stats().unknown,
  );
  metrics.gauge('millrace_existence_bytes', 'Keys that the existence filter holds', () => stats().bytes);
  metrics.gauge(
    'millrace_existence_groups_off',
    'Key groups given up for want of memory',
    () => stats().groupsTurnedOff,
  );
}
