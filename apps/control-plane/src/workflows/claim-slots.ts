import type { ClaimedSlot } from '@millrace/proto/control';
import { slots } from './proxies.ts';
import { timeouts } from './timeouts.ts';

/** A slot that a runner keeps for this job, since when. */
export interface HeldSlot {
  readonly slot: ClaimedSlot;
  readonly atMs: number;
}

export interface SlotClaims {
  readonly id: string;
  readonly generation: number;
  readonly parallelism: number;
  /** Slots that need no new claim, unless they have lapsed; at most `parallelism`. */
  readonly held?: readonly HeldSlot[];
}

/**
 * Claims one slot per subtask; waits as long as it takes. Claims that lapsed while others were waited for are made
 * anew, so that two jobs that each hold a part of the slots do not block each other for ever. Slots of one runner come
 * next to each other.
 */
export async function claimSlots(wanted: SlotClaims): Promise<readonly ClaimedSlot[]> {
  return (await claimHeld(wanted)).map((claim) => claim.slot);
}

/** As `claimSlots`, with the times of the claims. */
export async function claimHeld({ id, generation, parallelism, held = [] }: SlotClaims): Promise<readonly HeldSlot[]> {
  const claim = async (subtask: number): Promise<HeldSlot> => {
    const slot = await slots.claimSlot.executeWithOptions({ summary: `slot ${subtask} of ${parallelism}` }, [
      { id, generation, subtask },
    ]);
    return { slot, atMs: Date.now() };
  };
  const subtasks = Array.from({ length: parallelism }, (_, i) => i);
  const claimOrTake = async (subtask: number): Promise<HeldSlot> => held[subtask] ?? (await claim(subtask));
  const claims = await Promise.all(subtasks.map(claimOrTake));
  for (;;) {
    const now = Date.now();
    const lapsed = subtasks.filter((i) => hasLapsed(claims[i] as HeldSlot, now));
    if (lapsed.length === 0) break;
    const again = await Promise.all(lapsed.map(claim));
    lapsed.forEach((subtask, i) => {
      claims[subtask] = again[i] as HeldSlot;
    });
  }
  return claims.sort((a, b) => (a.slot.runnerId < b.slot.runnerId ? -1 : a.slot.runnerId > b.slot.runnerId ? 1 : 0));
}

function hasLapsed(claimed: HeldSlot, nowMs: number): boolean {
  const leaseMs = claimed.slot.leaseMs ?? timeouts.leaseDefaultMs;
  return nowMs - claimed.atMs > leaseMs * timeouts.leaseShare;
}

/**
 * Which slots of an attempt that has ended the next one may have, spread over the runners that keep them; `lost` is a
 * runner that is known to be gone.
 */
export function keptSlots(
  ended: readonly ClaimedSlot[],
  how: { readonly atMs: number; readonly count: number; readonly lost?: string | undefined },
): readonly HeldSlot[] {
  const byRunner = new Map<string, HeldSlot[]>();
  for (const slot of ended) {
    if (slot.keptMs === undefined || slot.runnerId === how.lost) continue;
    const kept = byRunner.get(slot.runnerId) ?? [];
    kept.push({ slot: { ...slot, leaseMs: slot.keptMs }, atMs: how.atMs });
    byRunner.set(slot.runnerId, kept);
  }
  const spread: HeldSlot[] = [];
  for (let i = 0; spread.length < how.count; i++) {
    const row = [...byRunner.values()].flatMap((kept) => kept[i] ?? []);
    if (row.length === 0) break;
    spread.push(...row.slice(0, how.count - spread.length));
  }
  return spread;
}
