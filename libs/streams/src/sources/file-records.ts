import { type FileHandle, open } from 'node:fs/promises';
import { MillraceError } from '@millrace/kernel';
import type { Split } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';
import { inputError, statFiles } from './files.ts';
import type { SplitRecords } from './sequential-reader.ts';

/** How records lie in a file, one behind the other. */
export interface FileFormat<T> {
  /** Index behind the record that begins at `from`, its line end included; `more` when it does not end in these bytes. */
  readonly end: (bytes: Uint8Array, from: number) => number | 'more';
  /** The record in this text, without white space around it. Not called for empty lines. */
  readonly take: (text: string) => T;
}

const chunkBytes = 256 * 1024;
const recordBytesMax = 16 * 1024 * 1024;

/** Checks that the file is still as long as the split says. */
export async function checkLength(split: Split): Promise<void> {
  const { endBytes } = split.data as { readonly endBytes: number };
  const [size] = await statFiles([split.id]);
  if ((size as number) >= endBytes) return;
  throw new MillraceError('source-position', `${split.id} has ${size} bytes and had ${endBytes} when the job started`);
}

/** The records of a split that is a file, from a byte offset on. */
export async function openFileRecords<T>(
  split: Split,
  position: number,
  format: FileFormat<T>,
): Promise<SplitRecords<T>> {
  const { endBytes } = split.data as { readonly endBytes: number };
  await checkLength(split);
  const records = new FileRecords(await open(split.id, 'r'), { file: split.id, endBytes, position, format });
  try {
    await records.fill();
  } catch (error) {
    await records.close();
    throw error;
  }
  return records;
}

interface Opened<T> {
  readonly file: string;
  readonly endBytes: number;
  readonly position: number;
  readonly format: FileFormat<T>;
}

class FileRecords<T> implements SplitRecords<T> {
  /** Offset of the first record that has not been emitted. */
  position: number;
  readonly #handle: FileHandle;
  readonly #file: string;
  readonly #endBytes: number;
  readonly #format: FileFormat<T>;
  /** Bytes from `position` on that have been read. */
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(handle: FileHandle, { file, endBytes, position, format }: Opened<T>) {
    this.#handle = handle;
    this.#file = file;
    this.#endBytes = endBytes;
    this.position = position;
    this.#format = format;
  }

  read(recordsMax: number, emit: (record: T) => void): Poll {
    for (let left = recordsMax; left > 0; ) {
      const end = this.#format.end(this.#bytes, this.#at);
      const last = end === 'more' && this.position + (this.#bytes.length - this.#at) >= this.#endBytes;
      if (end === 'more' && !last) return this.fill();
      if (last && this.#at >= this.#bytes.length) return 'end';
      const next = end === 'more' ? this.#bytes.length : end;
      if (this.#record(next, emit)) left--;
      this.position += next - this.#at;
      this.#at = next;
    }
    return 'more';
  }

  /** Reads the next bytes behind those at hand. */
  async fill(): Promise<void> {
    const kept = this.#bytes.subarray(this.#at);
    if (kept.length > recordBytesMax) {
      throw inputError(this.#file, `has a record of more than ${recordBytesMax} bytes at byte ${this.position}`);
    }
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

  /** Emits what lies before `stop`, unless it is empty. */
  #record(stop: number, emit: (record: T) => void): boolean {
    const text = this.#bytes.toString('utf8', this.#at, stop).trim();
    if (text === '') return false;
    let record: T;
    try {
      record = this.#format.take(text);
    } catch (cause) {
      throw inputError(this.#file, `has a record at byte ${this.position} that cannot be taken`, cause);
    }
    emit(record);
    return true;
  }
}
