import type { ChainMember } from './chain.ts';
import { InputTask } from './input-task.ts';
import type { WiredSlot } from './slot-wiring.ts';

/**
 * The watermark that the tasks fed by this operator's chain have reached in this slot. They get records from every subtask
 * of it, and of the other streams that meet there, so what they have seen is how far the slowest of all these is. Undefined
 * when nothing but its own subtask follows.
 */
export function downstreamWatermark(wired: WiredSlot, member: ChainMember): (() => number) | undefined {
  const chain = wired.tasks.findIndex((task) => task.chain.members.includes(member));
  const fed = wired.plan.chains
    .filter(({ inputs }) =>
      inputs.some(({ from, partitioning }) => partitioning.kind !== 'forward' && wired.plan.chainOf[from] === chain),
    )
    .map(({ id }) => wired.tasks[id])
    .filter((task) => task instanceof InputTask);
  if (fed.length === 0) return undefined;
  return () => {
    let smallestMs = Number.POSITIVE_INFINITY;
    for (const { gate } of fed) smallestMs = Math.min(smallestMs, gate.watermarkMs);
    return smallestMs;
  };
}
