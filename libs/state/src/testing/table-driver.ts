import { ByteWriter, type KeyGroupRange } from '@millrace/kernel';
import { writePrefix } from '../keys/key-layout.ts';
import { packedItem, packedValue, packKeys } from '../packed.ts';
import type { ScanRange, SnapshotHandle, StateTable, TableSpec } from '../store.ts';
import { WriteBatch } from '../write-batch.ts';

/** Puts and deletes as text, for readable tests. */
export type Write = readonly [key: Uint8Array, value: Uint8Array | string | undefined, expiresAtMs?: number];

export function text(value: string): Uint8Array {
  return new Uint8Array(Buffer.from(value));
}

/** A stored key in a key group: the rest is free text. */
export function keyIn(keyGroup: number, rest: string): Uint8Array {
  const writer = new ByteWriter(16);
  writePrefix(writer, keyGroup, 1);
  writer.raw(text(rest));
  return writer.copy();
}

export function specOf(changes: Partial<TableSpec> = {}): TableSpec {
  return {
    job: 'job',
    operator: 'operator',
    subtask: 0,
    keyGroups: { start: 0, end: 127 },
    maxParallelism: 128,
    generation: 1,
    ...changes,
  };
}

/** The part of a key-group range that subtask `index` of `parallelism` owns, for 128 groups. */
export function shareOf(index: number, parallelism: number): KeyGroupRange {
  return {
    start: Math.ceil((index * 128) / parallelism),
    end: Math.ceil(((index + 1) * 128) / parallelism) - 1,
  };
}

export function batchOf(writes: readonly Write[]): WriteBatch {
  const batch = new WriteBatch();
  for (const [key, value, expiresAtMs] of writes) {
    batch.begin();
    batch.arena.raw(key);
    batch.endKey();
    if (value === undefined) {
      batch.delete();
    } else {
      batch.arena.raw(typeof value === 'string' ? text(value) : value);
      batch.put(expiresAtMs ?? 0);
    }
  }
  return batch;
}

export async function write(table: StateTable, ...writes: readonly Write[]): Promise<void> {
  await table.write(batchOf(writes));
}

/** Values of the keys as text; undefined where absent. */
export async function read(table: StateTable, ...keys: readonly Uint8Array[]): Promise<(string | undefined)[]> {
  const values = await table.multiGet(packKeys(keys));
  return keys.map((_, i) => {
    const value = packedValue(values, i);
    return value === undefined ? undefined : Buffer.from(value).toString();
  });
}

export interface Scanned {
  readonly keys: string[];
  readonly values: string[];
  readonly pages: number[];
}

/** A scan read to its end, keys in hex. */
export async function scanned(table: StateTable, range: ScanRange): Promise<Scanned> {
  const out: Scanned = { keys: [], values: [], pages: [] };
  for await (const page of table.scan(range)) {
    out.pages.push(page.keys.count);
    for (let i = 0; i < page.keys.count; i++) {
      out.keys.push(Buffer.from(packedItem(page.keys, i)).toString('hex'));
      out.values.push(Buffer.from(packedItem(page.values, i)).toString());
    }
  }
  return out;
}

/** A handle as it comes back from a checkpoint's record. */
export function asStored(handle: SnapshotHandle): SnapshotHandle {
  return JSON.parse(JSON.stringify(handle)) as SnapshotHandle;
}
