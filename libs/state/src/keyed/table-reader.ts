import { ByteReader, type ByteWriter, isPending, type MaybePromise } from '@millrace/kernel';
import { type PackedValues, packedValue, packKeys } from '../packed.ts';
import type { Peek, StateTable, ValueView } from '../store.ts';
import type { BatcherFactory, RequestBatcher } from './ports.ts';
import type { TableCache } from './table-cache.ts';

/** Reads single values: from the cache, at once where the table can, else together with the other reads of the tick. */
export class TableReader {
  /** On the value that {@link peek} found. */
  readonly found = new ByteReader(new Uint8Array(0));
  readonly #table: StateTable;
  readonly #cache: TableCache;
  readonly #view: ValueView = { bytes: new Uint8Array(0), start: 0, end: 0 };
  readonly #batcher: RequestBatcher<Uint8Array, Uint8Array | undefined>;

  constructor(table: StateTable, batcher: BatcherFactory, cache: TableCache) {
    this.#table = table;
    this.#cache = cache;
    this.#batcher = batcher((keys: readonly Uint8Array[]) => {
      const values = table.multiGet(packKeys(keys));
      return isPending(values) ? values.then(unpacked) : unpacked(values);
    });
  }

  peek(key: ByteWriter): Peek {
    const view = this.#view;
    const cached = this.#cache.get(key, view);
    const answer = cached === 'unknown' ? this.#table.peek(key.bytes, 0, key.position, view) : cached;
    if (answer === 'found') this.found.reset(view.bytes, view.start, view.end);
    if (cached === 'unknown' && answer !== 'unknown') this.#cache.learn(key, answer === 'found' ? view : undefined);
    return answer;
  }

  later(key: ByteWriter): Promise<Uint8Array | undefined> {
    return this.#batcher.submit(key.copy());
  }

  /** Keeps an answer of {@link later}. Call it only when the key cannot have been written since it was asked for. */
  learn(key: ByteWriter, bytes: Uint8Array | undefined): void {
    this.#cache.learn(key, bytes === undefined ? undefined : { bytes, start: 0, end: bytes.length });
  }
}

function unpacked(values: PackedValues): (Uint8Array | undefined)[] {
  const out: (Uint8Array | undefined)[] = [];
  for (let i = 0; i < values.count; i++) out.push(packedValue(values, i));
  return out;
}

interface Waiting<Request, Response> {
  readonly request: Request;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
}

const batchMax = 1024;

/** One batch per microtask: for tests and for hosts without a batcher of their own. */
export const microtaskBatcher: BatcherFactory = <Request, Response>(
  execute: (requests: readonly Request[]) => MaybePromise<readonly Response[]>,
) => {
  let waiting: Waiting<Request, Response>[] = [];
  const run = async (): Promise<void> => {
    await Promise.resolve();
    const batch = waiting;
    waiting = [];
    for (let at = 0; at < batch.length; at += batchMax) {
      const part = batch.slice(at, at + batchMax);
      try {
        const responses = await execute(part.map((one) => one.request));
        for (const [i, one] of part.entries()) one.resolve(responses[i] as Response);
      } catch (error) {
        for (const one of part) one.reject(error);
      }
    }
  };
  return {
    submit: (request: Request) =>
      new Promise<Response>((resolve, reject) => {
        waiting.push({ request, resolve, reject });
        if (waiting.length === 1) void run();
      }),
  };
};
