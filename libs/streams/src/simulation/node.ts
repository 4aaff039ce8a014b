import type { Random } from '@millrace/kernel';
import type { Stream } from '../api/stream.ts';
import type { Field, Item } from './item.ts';

/** A record, or a watermark where its place among the records is known. */
export type Line = { readonly item: Item; readonly timeMs: number } | { readonly watermarkMs: number };

/** What is known of a stream, whatever the order in which things happen: it decides what may follow. */
export interface Facts {
  /** Records that are equal in these fields are in a known order; undefined: nothing is known of it. */
  readonly order: readonly Field[] | undefined;
  /**
   * `safe`: no record is behind a watermark. `exact`: some may be, and the place of every watermark among the records
   * is known. `late`: some may be, no more is known. `unknown`: even the records' times depend on what happens first.
   */
  readonly time: 'safe' | 'exact' | 'late' | 'unknown';
  /** Which sources its records come from. */
  readonly sources: readonly number[];
  /** No two records have one id. */
  readonly unique: boolean;
  /** Its records are changes: `v` is 1 for an insertion and −1 for a retraction. Only their sum is known. */
  readonly changes?: boolean;
}

/** What a drafted operator says of its results; whether they are unique is seen from the reference. */
export type ResultFacts = Omit<Facts, 'unique'>;

export interface Draft<S> {
  /** Plain data, printed when a case fails. */
  readonly spec: S;
  /** The main output, and the side output where there is one. */
  readonly outputs: readonly ResultFacts[];
}

/** A kind of operator: how the job runs it, and what has to come out. */
export interface Kind<S = unknown> {
  readonly name: string;
  readonly inputs: 1 | 2;
  /** An operator after these streams; undefined where its results would not be known. */
  draft(random: Random, inputs: readonly Facts[]): Draft<S> | undefined;
  build(spec: S, inputs: readonly Stream<Item>[], uid: string): readonly Stream<Item>[];
  /** The reference: one record at a time, with none of the operators' code. */
  compute(spec: S, inputs: readonly (readonly Line[])[]): readonly (readonly Line[])[];
}

/** Lets kinds of any spec lie in one list; a spec is only given to the kind that drafted it. */
export function kind<S>(one: Kind<S>): Kind {
  return one as unknown as Kind;
}

/** The only input, or the first of two. */
export function one<T>(inputs: readonly T[]): T {
  return inputs[0] as T;
}

export function two<T>(inputs: readonly T[]): T {
  return inputs[1] as T;
}

export function sourcesOf(inputs: readonly Facts[]): readonly number[] {
  return [...new Set(inputs.flatMap(({ sources }) => sources))];
}
