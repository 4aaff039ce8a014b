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

/** Base-36 milliseconds: nine digits last until the year 5188 and sort by time. */
const timeDigits = 9;
const makerBytes = 6;
const shape = /^([0-9a-z]{9})-(\d{1,15})-([0-9a-f]{12})([0-9a-z]+)$/;

/**
 * Mints ids `<time>-<generation>-<maker><counter>`: unique for ever by the random maker, in order of time, and telling
 * age and generation so that a sweep can judge a file from a listing alone.
 */
export class FileIds {
  readonly #maker: string;
  readonly #generation: number;
  #counter = 0;

  constructor(generation: number, random: Random) {
    this.#generation = generation;
    this.#maker = random.hex(makerBytes);
  }

  mint(nowMs: number): string {
    const time = Math.max(0, Math.floor(nowMs)).toString(36).padStart(timeDigits, '0');
    return `${time}-${this.#generation}-${this.#maker}${(this.#counter++).toString(36)}`;
  }

  /** True when this very object minted `id`. */
  minted(id: string): boolean {
    const origin = fileOrigin(id);
    return origin?.maker === this.#maker && origin.generation === this.#generation;
  }
}

/** Undefined for what is no file id: nothing is known of such an object. */
export function fileOrigin(id: string): FileOrigin | undefined {
  const match = shape.exec(id);
  if (match === null) return undefined;
  const [, time, generation, maker] = match as unknown as [string, string, string, string];
  return { mintedMs: Number.parseInt(time, 36), generation: Number(generation), maker };
}
