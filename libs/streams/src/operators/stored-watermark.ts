import type { KeyGroupRange } from '@millrace/kernel';
import type { StoredWatermark } from '../runtime/operator.ts';
import type { OperatorSnapshot } from '../runtime/slot.ts';

/** A watermark as a checkpoint keeps it, in JSON, which has no infinities; nothing before the first. */
export function storedWatermark(watermarkMs: number): { readonly watermarkMs?: StoredWatermark } {
  if (watermarkMs === Number.NEGATIVE_INFINITY) return {};
  return { watermarkMs: watermarkMs === Number.POSITIVE_INFINITY ? 'end' : watermarkMs };
}

/**
 * The watermark that a keyed operator goes on from: the smallest of the parts that its keys come from. It is that of
 * each of them but where subtasks had seen their inputs go idle in another order.
 */
export function restoredWatermarkMs(
  parts: readonly OperatorSnapshot[],
  place: { readonly uid: string; readonly keyGroups: KeyGroupRange },
): number {
  const { start, end } = place.keyGroups;
  let smallestMs: number | undefined;
  for (const { operator, table, watermarkMs = Number.NEGATIVE_INFINITY } of parts) {
    if (operator !== place.uid || table === undefined) continue;
    if (table.keyGroups.start > end || table.keyGroups.end < start) continue;
    const partMs = watermarkMs === 'end' ? Number.POSITIVE_INFINITY : watermarkMs;
    smallestMs = Math.min(smallestMs ?? partMs, partMs);
  }
  return smallestMs ?? Number.NEGATIVE_INFINITY;
}
