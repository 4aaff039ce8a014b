/** The records of random jobs, and what is computed from them. */
import { type Codec, int64, string, struct } from '@millrace/state';

/** Where all streams of random jobs carry the same type, any operator may follow any other. */
export interface Item {
  /** Tells where it comes from; unlike others of its stream unless the operators before it double records. */
  readonly id: string;
  /** Of the source's splits: records of one lane come from one split, in order. −1 where records of many have met. */
  readonly lane: number;
  readonly k: number;
  readonly m: number;
  readonly v: number;
}

export const itemCodec: Codec<Item> = struct({ id: string, lane: int64, k: int64, m: int64, v: int64 });

export const nothing: Item = { id: '', lane: -1, k: -1, m: -1, v: 0 };

/** What streams are keyed by. */
export type Field = 'lane' | 'k' | 'm';
export const fields: readonly Field[] = ['lane', 'k', 'm'];

const modulus = 1_000_003;

/** The order of its arguments counts. */
export function mix(a: number, b: number): number {
  return positive(a * 31 + b);
}

export function plus(a: number, b: number): number {
  return positive(a + b);
}

function positive(n: number): number {
  return ((n % modulus) + modulus) % modulus;
}

/** A number that tells two items apart. */
export function digest(item: Item): number {
  let hash = mix(mix(item.lane + 2, item.k + 2), mix(item.m + 2, item.v));
  for (let i = 0; i < item.id.length; i++) hash = mix(hash, item.id.charCodeAt(i));
  return hash;
}

/** The result of a key: only what the key says is known of it. */
export function resultOf(of: Readonly<Record<Field, number>>, id: string, v: number): Item {
  return { id, lane: of.lane, k: of.k, m: of.m, v };
}

/** Of records of one key: what they have in common. */
export function common(item: Item, keys: readonly Field[]): Readonly<Record<Field, number>> {
  const known = (field: Field): number => (keys.includes(field) ? item[field] : -1);
  return { lane: known('lane'), k: known('k'), m: known('m') };
}
