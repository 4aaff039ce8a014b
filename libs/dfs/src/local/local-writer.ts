import { type FileHandle, rm } from 'node:fs/promises';
import { assert } from '@millrace/kernel';
import type { DfsWriter } from '../dfs.ts';
import { localError } from './local-errors.ts';

interface Target {
  /** Where the bytes go until `close`. */
  readonly temporary: string;
  /** Makes the complete temporary file visible under its name. */
  publish(): Promise<void>;
  readonly fsync: boolean;
}

/** Writes to a temporary file and publishes it by rename: until then it has no name that a reader could know. */
export class LocalWriter implements DfsWriter {
  readonly #handle: FileHandle;
  readonly #target: Target;
  #state: 'open' | 'appending' | 'closing' | 'closed' | 'aborted' = 'open';
  #position = 0;

  constructor(handle: FileHandle, target: Target) {
    this.#handle = handle;
    this.#target = target;
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(this.#state === 'open', `append to a writer that is ${this.#state}`);
    this.#state = 'appending';
    try {
      await writeFully(this.#handle, bytes, this.#position);
      this.#position += bytes.length;
    } catch (error) {
      await this.abort();
      throw localError(error, 'write', this.#target.temporary);
    }
    // An abort meanwhile has the last word.
    if (this.#state === 'appending') this.#state = 'open';
  }

  async close(): Promise<void> {
    assert(this.#state === 'open', `close of a writer that is ${this.#state}`);
    this.#state = 'closing';
    try {
      if (this.#target.fsync) await this.#handle.sync();
      await this.#handle.close();
      await this.#target.publish();
      this.#state = 'closed';
    } catch (error) {
      await this.abort();
      throw localError(error, 'close', this.#target.temporary);
    }
  }

  async abort(): Promise<void> {
    if (this.#state === 'closed' || this.#state === 'aborted') return;
    this.#state = 'aborted';
    // Closing twice or a file that is gone is what an abort may meet; what stays behind is cleared at a later open.
    await this.#handle.close().catch(() => undefined);
    await rm(this.#target.temporary, { force: true }).catch(() => undefined);
  }
}

/** Writes all of `bytes` at `position`, however little the system takes at a time. */
export async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
