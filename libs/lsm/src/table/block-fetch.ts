import type { Semaphore } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Block } from '../sst/block.ts';
import type { SstReader } from '../sst/sst-reader.ts';
import type { HeldBlocks, Missing } from './version.ts';

/** Blocks this close together are fetched by one read: a request costs more than the bytes between them. */
const gapBytesMax = 16 * 1024;
const readBytesMax = 1024 * 1024;

export interface BlockFetchOptions {
  readonly reads: Semaphore;
  readonly parent?: TraceContext | undefined;
}

/** What a batch of lookups misses, fetched together: in parallel, adjacent blocks of a file by one read. */
export class BlockFetch {
  readonly #options: BlockFetchOptions;
  readonly #held = new Map<SstReader, Map<number, Block>>();
  readonly #wanted = new Map<SstReader, Set<number>>();

  constructor(options: BlockFetchOptions) {
    this.#options = options;
  }

  /** Everything fetched so far. */
  get held(): HeldBlocks {
    return this.#held;
  }

  want({ reader, block }: Missing): void {
    const blocks = this.#wanted.get(reader as SstReader);
    if (blocks === undefined) this.#wanted.set(reader as SstReader, new Set([block]));
    else blocks.add(block);
  }

  /** Fetches what was wanted since the last call. */
  async run(): Promise<void> {
    const work: Array<Promise<void>> = [];
    for (const [reader, blocks] of this.#wanted) {
      if (!reader.isOpen) work.push(this.#options.reads.run(() => reader.open(this.#options.parent)));
      else work.push(...this.#fetch(reader, blocks));
    }
    this.#wanted.clear();
    await Promise.all(work);
  }

  #fetch(reader: SstReader, blocks: ReadonlySet<number>): Array<Promise<void>> {
    const work: Array<Promise<void>> = [];
    const missing: number[] = [];
    for (const block of blocks) {
      const arriving = reader.arriving(block);
      if (arriving === undefined) missing.push(block);
      else work.push(arriving.then((arrived) => this.#keep(reader, block, arrived)));
    }
    for (const [first, end] of spans(reader, missing)) work.push(this.#read(reader, first, end));
    return work;
  }

  async #read(reader: SstReader, first: number, end: number): Promise<void> {
    const { reads, parent } = this.#options;
    const blocks = await reads.run(() => reader.read(first, end, true, parent));
    blocks.forEach((block, i) => this.#keep(reader, first + i, block));
  }

  #keep(reader: SstReader, number: number, block: Block): void {
    let blocks = this.#held.get(reader);
    if (blocks === undefined) this.#held.set(reader, (blocks = new Map()));
    blocks.set(number, block);
  }
}

/** Ranges `[first, end)` that cover the blocks. */
function spans(reader: SstReader, blocks: number[]): Array<[number, number]> {
  const { offsets } = reader.index;
  const out: Array<[number, number]> = [];
  for (const block of blocks.sort((a, b) => a - b)) {
    const last = out[out.length - 1];
    const start = offsets[block] as number;
    const end = offsets[block + 1] as number;
    const isNear =
      last !== undefined &&
      start - (offsets[last[1]] as number) <= gapBytesMax &&
      end - (offsets[last[0]] as number) <= readBytesMax;
    if (isNear) last[1] = block + 1;
    else out.push([block, block + 1]);
  }
  return out;
}
