import { createHash } from 'node:crypto';
import { corrupt } from '../envelope.ts';
import type { FileRef } from '../file-store.ts';
import type { Holder } from '../holder.ts';
import type { JobNamespace } from '../namespace.ts';

/** What a fork writes into the namespace of each job whose files it takes: a holder of those files. */
export interface ForkPin {
  /** Job that took the files. */
  readonly child: string;
  /** The fork that wrote it: `ForkRequest.claim`. */
  readonly claim: string;
  /** 1 for the first; a later one replaces it when the child needs fewer files. */
  readonly number: number;
}

const namePrefix = 'fork-';

export function pinHolder(pin: ForkPin, files: readonly FileRef[]): Holder {
  const { child, claim, number } = pin;
  const own = files.map(({ id, sizeBytes, crc32 }) => ({ id, sizeBytes, crc32 }));
  own.sort((a, b) => (a.id < b.id ? -1 : 1));
  return { files: own, value: { fork: { child, claim, number } }, generation: 0 };
}

export function pinPath(home: JobNamespace, { child, claim, number }: ForkPin): string {
  return `${pinsPrefix(home, child, claim)}${number}`;
}

/** All pins of one fork in one home, and nothing else, start with this. */
export function pinsPrefix(home: JobNamespace, child: string, claim: string): string {
  // A hash, because a name may not be as long as the two together; who it is stands in the pin.
  const owner = createHash('sha256')
    .update(JSON.stringify([child, claim]))
    .digest('hex')
    .slice(0, 32);
  return home.holderPath(`${namePrefix}${owner}-`);
}

/** All pins of forks in a home, and nothing else, start with this. */
export function allPinsPrefix(home: JobNamespace): string {
  return home.holderPath(namePrefix);
}

export function pinOf(path: string, holder: Holder): ForkPin {
  const { child, claim, number } = (holder.value as { readonly fork?: Partial<ForkPin> } | null)?.fork ?? {};
  if (typeof child !== 'string' || typeof claim !== 'string' || typeof number !== 'number') {
    throw corrupt(path, 'it is no pin of a fork');
  }
  return { child, claim, number };
}
