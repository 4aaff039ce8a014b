import type { ActivitySlotInfo, CustomSlotSupplier, WorkerTuner } from '@temporalio/worker';
import type { SlotPool } from './slot-pool.ts';

/** Lets a worker poll for claims only while the pool has a free slot. */
export function claimTuner(pool: SlotPool): WorkerTuner {
  const activityTaskSlotSupplier: CustomSlotSupplier<ActivitySlotInfo> = {
    type: 'custom',
    async reserveSlot(_context, signal) {
      await pool.reserve(signal);
      return {};
    },
    tryReserveSlot: () => (pool.tryReserve() ? {} : null),
    markSlotUsed: () => undefined,
    releaseSlot: () => pool.unreserve(),
  };
  const one = { type: 'fixed-size', numSlots: 1 } as const;
  return {
    activityTaskSlotSupplier,
    workflowTaskSlotSupplier: one,
    localActivityTaskSlotSupplier: one,
    nexusTaskSlotSupplier: one,
  };
}
