import type { ClaimedSlot } from '@millrace/proto/control';
import { slots } from './proxies.ts';
import { timeouts } from './timeouts.ts';

interface Claimed {
  readonly slot: ClaimedSlot;
  readonly atMs: number;
}

/**
 * Claims one slot per subtask; waits as long as it takes. Claims that lapsed while others were waited for are made
 * anew, so that two jobs that each hold a part of the slots do not block each other for ever. Slots of one runner come
 * next to each other.
 */
export async function claimSlots(id: string, generation: number, parallelism: number): Promise<readonly ClaimedSlot[]> {
  const claim = async (subtask: number): Promise<Claimed> => {
    const slot = await slots.claimSlot.executeWithOptions({ summary: `slot ${subtask} of ${parallelism}` }, [
      { id, generation, subtask },
    ]);
    return { slot, atMs: Date.now() };
  };
  const subtasks = Array.from({ length: parallelism }, (_, i) => i);
  const claims = await Promise.all(subtasks.map(claim));
  for (;;) {
    const now = Date.now();
    const lapsed = subtasks.filter((i) => hasLapsed(claims[i] as Claimed, now));
    if (lapsed.length === 0) break;
    const again = await Promise.all(lapsed.map(claim));
    lapsed.forEach((subtask, i) => {
      claims[subtask] = again[i] as Claimed;
    });
  }
  return claims.map((c) => c.slot).sort((a, b) => (a.runnerId < b.runnerId ? -1 : a.runnerId > b.runnerId ? 1 : 0));
}

function hasLapsed(claimed: Claimed, nowMs: number): boolean {
  const leaseMs = claimed.slot.leaseMs ?? timeouts.leaseDefaultMs;
  return nowMs - claimed.atMs > leaseMs * timeouts.leaseShare;
}
