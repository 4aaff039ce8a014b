import type { CacheDisk } from './cache-disk.ts';
import { CopyReader, type NoAnswer } from './copy-format.ts';

interface OpenCopy {
  readonly reader: CopyReader;
  reads: number;
  /** Out of the set: its last read closes it. */
  retired: boolean;
  closed: boolean;
}

export type CopyAnswer = Uint8Array | NoAnswer | 'absent';

/** Copies that are kept open, because they are read again and again; the one that was not read for longest is closed. */
export class OpenCopies {
  readonly #disk: CacheDisk;
  readonly #countMax: number;
  /** In order of last use. */
  readonly #open = new Map<string, OpenCopy>();
  readonly #opening = new Map<string, Promise<OpenCopy | 'absent' | 'damaged'>>();
  #closed = false;

  constructor(disk: CacheDisk, countMax: number) {
    this.#disk = disk;
    this.#countMax = countMax;
  }

  /** Throws errors of the system. */
  async read(
    copy: { readonly name: string; readonly sizeBytes: number },
    offset: number,
    length: number,
  ): Promise<CopyAnswer> {
    const found = this.#current(copy.name) ?? (await this.#opened(copy.name, copy.sizeBytes));
    if (typeof found === 'string') return found;
    found.reads++;
    try {
      const answer = await found.reader.read(offset, length);
      if (typeof answer === 'string') this.#retire(copy.name, found);
      return answer;
    } finally {
      found.reads--;
      closeUnused(found);
    }
  }

  close(): void {
    this.#closed = true;
    for (const [name, copy] of this.#open) this.#retire(name, copy);
  }

  #current(name: string): OpenCopy | undefined {
    const found = this.#open.get(name);
    if (found === undefined) return undefined;
    this.#open.delete(name);
    this.#open.set(name, found);
    return found;
  }

  #opened(name: string, sizeBytes: number): Promise<OpenCopy | 'absent' | 'damaged'> {
    let opening = this.#opening.get(name);
    if (opening === undefined) {
      opening = this.#openCopy(name, sizeBytes).finally(() => this.#opening.delete(name));
      this.#opening.set(name, opening);
    }
    return opening;
  }

  async #openCopy(name: string, sizeBytes: number): Promise<OpenCopy | 'absent' | 'damaged'> {
    const file = await this.#disk.open(name);
    if (file === undefined) return 'absent';
    const reader = await CopyReader.open(file, sizeBytes).catch((error: unknown) => {
      file.close();
      throw error;
    });
    if (reader === undefined) {
      file.close();
      return 'damaged';
    }
    const copy: OpenCopy = { reader, reads: 0, retired: this.#closed, closed: false };
    if (!this.#closed) this.#open.set(name, copy);
    if (this.#open.size > this.#countMax) {
      const [oldest] = this.#open;
      if (oldest !== undefined) this.#retire(oldest[0], oldest[1]);
    }
    return copy;
  }

  #retire(name: string, copy: OpenCopy): void {
    if (this.#open.get(name) === copy) this.#open.delete(name);
    copy.retired = true;
    closeUnused(copy);
  }
}

function closeUnused(copy: OpenCopy): void {
  if (!copy.retired || copy.reads > 0 || copy.closed) return;
  copy.closed = true;
  copy.reader.close();
}
