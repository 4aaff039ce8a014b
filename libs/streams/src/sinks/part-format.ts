import { MillraceError } from '@millrace/kernel';

/** How records become the bytes of part files. */
export interface PartFormat {
  /** Of the files' names, without the dot. */
  readonly extension: string;
  /** An encoder of one file. */
  create(): PartEncoder;
}

export interface PartEncoder {
  /** Throws when the record does not fit the format. */
  add(record: unknown): void;
  /** Bytes, about, that `take` would give. */
  readonly bytes: number;
  /** What can be written by now. */
  take(): Uint8Array;
  /** The rest of the file. */
  finish(): Uint8Array;
}

const newline = '\n';

/** One JSON value per line. */
export const jsonLinesParts: PartFormat = { extension: 'jsonl', create: () => new JsonLinesEncoder() };

class JsonLinesEncoder implements PartEncoder {
  readonly #encoder = new TextEncoder();
  #lines: string[] = [];
  bytes = 0;

  add(record: unknown): void {
    const line = JSON.stringify(record) as string | undefined;
    if (line === undefined) throw new MillraceError('bad-argument', 'a record is not JSON');
    this.#lines.push(line);
    this.bytes += line.length + 1;
  }

  take(): Uint8Array {
    if (this.#lines.length === 0) return new Uint8Array();
    const bytes = this.#encoder.encode(this.#lines.join(newline) + newline);
    this.#lines = [];
    this.bytes = 0;
    return bytes;
  }

  finish(): Uint8Array {
    return this.take();
  }
}
