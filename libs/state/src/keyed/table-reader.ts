import { ByteReader, type ByteWriter, isPending, type MaybePromise } from '@millrace/kernel';
import { type PackedValues, packedValue, packKeys } from '../packed.ts';
import type { Peek, StateTable, ValueView } from '../store.ts';
import type { BatcherFactory, RequestBatcher } from './ports.ts';

/** Reads single values: at once where the table can, else together with the other reads of the tick. */
export class TableReader {
  /** On the value that {@link peek} found. */
  readonly found = new ByteReader(new Uint8Array(0));
  readonly #table: StateTable;
  readonly #view: ValueView = { bytes: new Uint8Array(0), start: 0, end: 0 };
  readonly #batcher: RequestBatcher<Uint8Array, Uint8Array | undefined>;

  constructor(table: StateTable, batcher: BatcherFactory) {
    this.#table = table;
    this.#batcher = batcher((keys: readonly Uint8Array[]) => {
      const values = table.multiGet(packKeys(keys));
      return isPending(values) ? values.then(unpacked) : unpacked(values);
    });
  }

  peek(key: ByteWriter): Peek {
    const view = this.#view;
    const answer = this.#table.peek(key.bytes, 0, key.position, view);
    if (answer === 'found') this.found.reset(view.bytes, view.start, view.end);
    return answer;
  }

  later(key: ByteWriter): Promise<Uint8Array | undefined> {
    return this.#batcher.submit(key.copy());
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
