import { corrupt, openEnvelope, sealEnvelope } from '../envelope.ts';

/** One numbered version of a fenced object, as stored. */
export interface Version<T> {
  /** From 1, without gaps. */
  readonly number: number;
  readonly value: T;
  /** Who claimed the value's generation; null when it was not claimed by name. */
  readonly claimant: string | null;
  /**
   * What each of the newest versions was marked with by its writer, this one first. A writer that does not know
   * whether its write took effect finds its mark here, even after its version was collected.
   */
  readonly marks: readonly string[];
}

/** Marks kept in each version: how far others may be ahead before a writer can no longer tell what became of its own. */
export const marksMax = 64;

const format = 'millrace-version/1';

export function encodeVersion(version: Version<unknown>): Uint8Array {
  const { number, claimant, marks, value } = version;
  return sealEnvelope(format, { number, claimant, marks, value });
}

/** `number` is what the object's name says; a version that says otherwise is damaged. */
export function decodeVersion<T>(path: string, number: number, bytes: Uint8Array): Version<T> {
  const body = openEnvelope(format, path, bytes) as Version<T> | null;
  if (body === null || typeof body !== 'object' || body.number !== number || !Array.isArray(body.marks)) {
    throw corrupt(path, 'it is no version of that number');
  }
  return body;
}

/** What became of a write of `number` marked `mark`, in the light of a version that was the newest after it. */
export function fateOf(write: { number: number; mark: string }, head: Version<unknown> | undefined): Fate {
  if (head === undefined || head.number < write.number) return 'absent';
  const mark = head.marks[head.number - write.number];
  if (mark === undefined) return 'unknown';
  return mark === write.mark ? 'applied' : 'lost';
}

export type Fate =
  /** Part of the object's history. */
  | 'applied'
  /** Another write has the number. */
  | 'lost'
  /** Nobody has the number. */
  | 'absent'
  /** Too long ago to tell. */
  | 'unknown';
