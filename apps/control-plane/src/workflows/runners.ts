import type { ClaimedSlot } from '@millrace/proto/control';
import type { RunnerAddress } from '../activities/contract.ts';

/** The runners that host slots of a plan, each once. */
export function distinctRunners(slots: readonly ClaimedSlot[]): readonly RunnerAddress[] {
  const byId = new Map<string, RunnerAddress>();
  for (const slot of slots) byId.set(slot.runnerId, { runnerId: slot.runnerId, address: slot.address });
  return [...byId.values()];
}
