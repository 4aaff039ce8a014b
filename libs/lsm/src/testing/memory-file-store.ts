import { crc32 } from 'node:zlib';
import { MillraceError } from '@millrace/kernel';
import type { DelegatingFileStore, FileDelegation, FileReader, FileRef, FileStore, FileWriter } from '@millrace/ufs';

export type FileOperation = 'create' | 'append' | 'seal' | 'read';

/** Files in memory, with a hook before every operation that may throw or wait. */
export class MemoryFileStore implements DelegatingFileStore {
  readonly files = new Map<string, Uint8Array>();
  readonly discarded: string[] = [];
  /** Writers neither sealed nor aborted. */
  openWriters = 0;
  bytesRead = 0;
  reads = 0;
  before: (operation: FileOperation) => void | Promise<void> = () => undefined;
  #next = 0;
  #delegations = 0;

  create(): Promise<FileWriter> {
    return this.#create('file-');
  }

  open(file: FileRef): FileReader {
    return {
      file,
      read: async (offset, length, _parent, into) => {
        await this.before('read');
        const bytes = this.files.get(file.id)?.subarray(offset, offset + length);
        if (bytes === undefined) throw new MillraceError('bad-argument', `no file ${file.id}`);
        this.reads++;
        this.bytesRead += length;
        if (into === undefined) return Uint8Array.from(bytes);
        into.set(bytes);
        return into.subarray(0, bytes.length);
      },
    };
  }

  discard(files: readonly FileRef[]): void {
    for (const file of files) {
      this.files.delete(file.id);
      this.discarded.push(file.id);
    }
  }

  delegate(): FileDelegation {
    return { prefix: `delegated-${this.#delegations++}-` };
  }

  made({ id }: FileRef): boolean {
    return id.startsWith('delegated-');
  }

  async discardDelegated({ prefix }: FileDelegation, kept: readonly FileRef[]): Promise<number> {
    const gone = [...this.files.keys()].filter((id) => id.startsWith(prefix) && !kept.some((file) => file.id === id));
    for (const id of gone) this.files.delete(id);
    return gone.length;
  }

  /** The same files, as a delegate sees them. */
  under({ prefix }: FileDelegation): FileStore {
    return {
      create: () => this.#create(prefix),
      open: (file) => this.open(file),
      discard: (files) => this.discard(files),
    };
  }

  async #create(prefix: string): Promise<FileWriter> {
    await this.before('create');
    this.openWriters++;
    return new MemoryWriter(this, `${prefix}${this.#next++}`);
  }
}

class MemoryWriter implements FileWriter {
  readonly id: string;
  readonly #store: MemoryFileStore;
  readonly #parts: Uint8Array[] = [];
  #isOpen = true;

  constructor(store: MemoryFileStore, id: string) {
    this.#store = store;
    this.id = id;
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.#store.before('append');
    this.#parts.push(Uint8Array.from(bytes));
  }

  async seal(): Promise<FileRef> {
    await this.#store.before('seal');
    const bytes = Buffer.concat(this.#parts);
    this.#store.files.set(this.id, bytes);
    this.#close();
    return { id: this.id, sizeBytes: bytes.length, crc32: crc32(bytes) };
  }

  async abort(): Promise<void> {
    this.#close();
  }

  #close(): void {
    if (this.#isOpen) this.#store.openWriters--;
    this.#isOpen = false;
  }
}
