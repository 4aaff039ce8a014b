import type { Random } from '@millrace/kernel';

/** What the id of a file tells about it without a look at the store. */
export interface FileOrigin {
  /** Time of minting, epoch milliseconds of the maker's clock. */
  readonly mintedMs: number;
  /** The attempt whose process made the file. */
  readonly generation: number;
  /** The maker: one {@link FileIds}, so one process and job. */
  readonly maker: string;
}

/** Lets another process make files on behalf of the one that minted it. Plain JSON. */
export interface FileDelegation {
  /** All ids made under it begin so, and no others do. */
  readonly prefix: string;
}

/** Mints ids, and knows its own. */
export interface FileIdSource {
  mint(nowMs: number): string;
  /** True for the ids of this very object, those of its delegates included. */
  minted(id: string): boolean;
}

/** Base-36 milliseconds: nine digits last until the year 5188 and sort by time. */
const timeDigits = 9;
const makerBytes = 6;
const shape = /^([0-9a-z]{9})-(\d{1,15})-([0-9a-f]{12})([0-9a-z]+)$/;
/** Counters never begin with 0 but for the number itself, so a longer one that does is a delegate's. */
const delegateMark = '0';
const delegateDigits = 6;

/**
 * Mints ids `<time>-<generation>-<maker><counter>`: unique for ever by the random maker, in order of time, and telling
 * age and generation so that a sweep can judge a file from a listing alone. A delegate's ids have this maker, too; behind
 * it stand `0`, the number of the delegation, and a random name of the delegate, so that any number of processes may
 * work under one delegation without ever meeting.
 */
export class FileIds implements FileIdSource {
  readonly #maker: string;
  readonly #generation: number;
  #counter = 0;
  #delegations = 0;

  constructor(generation: number, random: Random) {
    this.#generation = generation;
    this.#maker = random.hex(makerBytes);
  }

  mint(nowMs: number): string {
    return this.#stem(nowMs) + (this.#counter++).toString(36);
  }

  minted(id: string): boolean {
    const origin = fileOrigin(id);
    return origin?.maker === this.#maker && origin.generation === this.#generation;
  }

  delegate(nowMs: number): FileDelegation {
    const number = (this.#delegations++).toString(36).padStart(delegateDigits, '0');
    return { prefix: this.#stem(nowMs) + delegateMark + number };
  }

  #stem(nowMs: number): string {
    const time = Math.max(0, Math.floor(nowMs)).toString(36).padStart(timeDigits, '0');
    return `${time}-${this.#generation}-${this.#maker}`;
  }
}

/** Mints ids under a delegation. Their time is that of the delegation: a sweep takes the younger of it and the store's. */
export class DelegatedFileIds implements FileIdSource {
  readonly #stem: string;
  #counter = 0;

  constructor({ prefix }: FileDelegation, random: Random) {
    this.#stem = prefix + random.hex(makerBytes);
  }

  mint(): string {
    return this.#stem + (this.#counter++).toString(36);
  }

  minted(id: string): boolean {
    return id.startsWith(this.#stem);
  }
}

/** Undefined for what is no file id: nothing is known of such an object. */
export function fileOrigin(id: string): FileOrigin | undefined {
  const match = shape.exec(id);
  if (match === null) return undefined;
  const [, time, generation, maker] = match as unknown as [string, string, string, string];
  return { mintedMs: Number.parseInt(time, 36), generation: Number(generation), maker };
}
