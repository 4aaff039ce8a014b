/**
 * Versions and who sees them. Every open of a table gets an incarnation, a number greater than those of all opens before;
 * within it writes carry a sequence that grows at each snapshot. Both together are the epoch of a stored row, so that the
 * newest row of a key is the one with the greatest epoch. A lineage says which rows a table sees: those of its own
 * incarnation, and of each earlier one up to the sequence of the snapshot that it was continued from. Whatever a dead
 * incarnation wrote after that snapshot has an epoch that no lineage contains. Pure.
 */
import { MillraceError } from '@millrace/kernel';

/** Rows of one incarnation up to a sequence, included. */
export interface Segment {
  readonly incarnation: number;
  readonly sequence: number;
}

/** In order of their incarnations. */
export type Lineage = readonly Segment[];

/** Sequences of an incarnation; incarnations fit below 2^27, so that an epoch is a safe integer. */
const sequencesMax = 2 ** 26;
export const incarnationMax = 2 ** 27 - 1;
export const sequenceMax = sequencesMax - 1;

export function epochOf(incarnation: number, sequence: number): number {
  if (sequence <= sequenceMax && incarnation <= incarnationMax) return incarnation * sequencesMax + sequence;
  throw new MillraceError('invariant-broken', `there is no epoch ${incarnation}.${sequence}`);
}

/** Whether a table with this lineage sees a row of `epoch`. */
export function sees(lineage: Lineage, epoch: number): boolean {
  const incarnation = Math.floor(epoch / sequencesMax);
  // The newest come last and are met most.
  for (let i = lineage.length - 1; i >= 0; i--) {
    const segment = lineage[i] as Segment;
    if (segment.incarnation === incarnation) return epoch % sequencesMax <= segment.sequence;
    if (segment.incarnation < incarnation) return false;
  }
  return false;
}

/** The greatest epoch that the lineage sees; -1 for none. */
export function newestOf(lineage: Lineage): number {
  const last = lineage.at(-1);
  return last === undefined ? -1 : epochOf(last.incarnation, last.sequence);
}

/** Of a key's epochs, newest first, those that none of the lineages needs: superseded, or written by dead incarnations. */
export function unneeded(epochs: readonly number[], lineages: readonly Lineage[]): readonly number[] {
  const needed = new Set(lineages.map((lineage) => epochs.find((epoch) => sees(lineage, epoch))));
  return epochs.filter((epoch) => !needed.has(epoch));
}
