import { type FileHandle, open } from 'node:fs/promises';
import { MillraceError } from '@millrace/kernel';
import { type Codec, msgpack } from '@millrace/state';
import type { Source, Split } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';
import { inputError, statFiles } from './files.ts';
import { SequentialReader, type SplitRecords } from './sequential-reader.ts';

export interface JsonLinesSourceOptions<T> {
  readonly files: readonly string[];
  /** Checks and shapes a parsed line; without it lines are taken as they are. */
  readonly parse?: (json: unknown) => T;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<T>;
}

const chunkBytes = 256 * 1024;
const lineBytesMax = 16 * 1024 * 1024;
const newline = 0x0a;

/** Files of one JSON value per line. A split is a file, its position a byte offset; empty lines are skipped. */
export function jsonLinesFiles<T = unknown>(options: JsonLinesSourceOptions<T>): Source<T> {
  const { files } = options;
  const parse = options.parse ?? ((json: unknown): T => json as T);
  return {
    kind: 'json-lines',
    codec: options.codec ?? msgpack<T>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: async () => {
      const sizes = await statFiles(files);
      return files.map((file, order) => ({ id: file, order, data: { endBytes: sizes[order] as number } }));
    },
    open: (positions) =>
      Promise.resolve(new SequentialReader(positions, (split, position) => openFile(split, position, parse))),
  };
}

async function openFile<T>(split: Split, position: number, parse: (json: unknown) => T): Promise<SplitRecords<T>> {
  const { endBytes } = split.data as { readonly endBytes: number };
  const [size] = await statFiles([split.id]);
  if ((size as number) < endBytes) {
    throw new MillraceError(
      'source-position',
      `${split.id} has ${size} bytes and had ${endBytes} when the job started`,
    );
  }
  const reader = new LineReader(await open(split.id, 'r'), split.id, endBytes, position, parse);
  try {
    await reader.fill();
  } catch (error) {
    await reader.close();
    throw error;
  }
  return reader;
}

/** Lines of one file from a byte offset on. */
class LineReader<T> implements SplitRecords<T> {
  /** Offset of the first line that has not been emitted. */
  position: number;
  readonly #handle: FileHandle;
  readonly #file: string;
  readonly #endBytes: number;
  readonly #parse: (json: unknown) => T;
  /** Bytes from `position` on that have been read. */
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(handle: FileHandle, file: string, endBytes: number, position: number, parse: (json: unknown) => T) {
    this.#handle = handle;
    this.#file = file;
    this.#endBytes = endBytes;
    this.position = position;
    this.#parse = parse;
  }

  read(recordsMax: number, emit: (record: T) => void): Poll {
    for (let left = recordsMax; left > 0; ) {
      const end = this.#bytes.indexOf(newline, this.#at);
      const last = end < 0 && this.position + (this.#bytes.length - this.#at) >= this.#endBytes;
      if (end < 0 && !last) return this.fill();
      if (last && this.#at >= this.#bytes.length) return 'end';
      const stop = end < 0 ? this.#bytes.length : end;
      if (this.#line(stop, emit)) left--;
      const next = Math.min(stop + 1, this.#bytes.length);
      this.position += next - this.#at;
      this.#at = next;
    }
    return 'more';
  }

  /** Reads the next bytes behind those at hand. */
  async fill(): Promise<void> {
    const kept = this.#bytes.subarray(this.#at);
    if (kept.length > lineBytesMax) throw inputError(this.#file, `has a line of more than ${lineBytesMax} bytes`);
    const start = this.position + kept.length;
    const count = Math.min(Math.max(chunkBytes, kept.length), this.#endBytes - start);
    const bytes = Buffer.allocUnsafe(kept.length + count);
    kept.copy(bytes);
    const { bytesRead } = await this.#handle.read(bytes, kept.length, count, start);
    if (bytesRead === 0 && count > 0) throw inputError(this.#file, 'became shorter while it was read');
    this.#bytes = bytes.subarray(0, kept.length + bytesRead);
    this.#at = 0;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  /** Emits the line that ends at `stop`, unless it is empty. */
  #line(stop: number, emit: (record: T) => void): boolean {
    const text = this.#bytes.toString('utf8', this.#at, stop).trim();
    if (text === '') return false;
    let record: T;
    try {
      record = this.#parse(JSON.parse(text));
    } catch (cause) {
      throw inputError(this.#file, `has a line at byte ${this.position} that cannot be taken`, cause);
    }
    emit(record);
    return true;
  }
}
