import { assert } from '@millrace/kernel';
import type { DfsWriter } from '../dfs.ts';

/** Where the parts of one file go. A part is the store's own; `whole` is a file that never became larger than a part. */
export interface PartTarget {
  readonly partBytes: number;
  /** Sends the part with this number, from 0. Repeats what can be repeated. */
  part(number: number, bytes: Uint8Array): Promise<void>;
  /** Publishes a file in one piece. */
  whole(bytes: Uint8Array): Promise<void>;
  /** Publishes what the parts make together. */
  complete(parts: number): Promise<void>;
  /** Gets rid of parts that were sent. Never rejects: what stays behind is found by age. */
  discard(): Promise<void>;
}

/** Parts on their way at one time: the next one fills while one is sent. */
const inFlightMax = 2;

/** Cuts what is appended into parts, which it sends while the next one fills: memory is at most three parts. */
export class PartWriter implements DfsWriter {
  readonly #target: PartTarget;
  readonly #sending = new Set<Promise<void>>();
  #buffer: Uint8Array;
  #filled = 0;
  #parts = 0;
  #state: 'open' | 'closing' | 'closed' | 'aborted' = 'open';
  #failure: unknown;

  constructor(target: PartTarget) {
    this.#target = target;
    this.#buffer = new Uint8Array(Math.min(target.partBytes, 64 * 1024));
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(this.#state === 'open', `append to a writer that is ${this.#state}`);
    const { partBytes } = this.#target;
    for (let at = 0; at < bytes.length; ) {
      const take = Math.min(bytes.length - at, partBytes - this.#filled);
      this.#room(this.#filled + take);
      this.#buffer.set(bytes.subarray(at, at + take), this.#filled);
      this.#filled += take;
      at += take;
      // A full part waits for more: the last one is sent by `close`, which knows whether it is the only one.
      if (this.#filled === partBytes && at < bytes.length) await this.#sendPart();
    }
  }

  async close(): Promise<void> {
    assert(this.#state === 'open', `close of a writer that is ${this.#state}`);
    this.#state = 'closing';
    try {
      if (this.#parts === 0) await this.#target.whole(this.#buffer.subarray(0, this.#filled));
      else {
        if (this.#filled > 0) await this.#sendPart();
        await Promise.all(this.#sending);
        if (this.#failure !== undefined) throw this.#failure;
        await this.#target.complete(this.#parts);
      }
      this.#state = 'closed';
    } catch (error) {
      await this.abort();
      throw error;
    }
  }

  async abort(): Promise<void> {
    if (this.#state === 'closed' || this.#state === 'aborted') return;
    this.#state = 'aborted';
    this.#buffer = new Uint8Array(0);
    await Promise.all(this.#sending);
    if (this.#parts > 0) await this.#target.discard();
  }

  #room(sizeBytes: number): void {
    if (sizeBytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.min(this.#target.partBytes, Math.max(sizeBytes, 2 * this.#buffer.length)));
    grown.set(this.#buffer.subarray(0, this.#filled));
    this.#buffer = grown;
  }

  async #sendPart(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#filled);
    const number = this.#parts++;
    this.#buffer = new Uint8Array(Math.min(this.#target.partBytes, 64 * 1024));
    this.#filled = 0;
    // Its failure is kept and told by the next call, so that nobody has to await it here.
    const sending = this.#target.part(number, bytes).then(
      () => void this.#sending.delete(sending),
      (error: unknown) => {
        this.#sending.delete(sending);
        this.#failure ??= error;
      },
    );
    this.#sending.add(sending);
    while (this.#sending.size >= inFlightMax) await Promise.race(this.#sending);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
