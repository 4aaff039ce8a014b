import { packedItem, packedValue, packKeys, type StateTable, type TableSpec, WriteBatch } from '@millrace/state';

export function specOf(changes: Partial<TableSpec> = {}): TableSpec {
  const keyGroups = { start: 0, end: 127 };
  return { job: 'job', operator: 'operator', subtask: 0, keyGroups, maxParallelism: 128, generation: 1, ...changes };
}

/** Keys of key group 1 by plain text. */
export function keyOf(text: string): Uint8Array {
  return Uint8Array.of(0, 1, ...Buffer.from(text));
}

export function batchOf(entries: Readonly<Record<string, string | Uint8Array>>): WriteBatch {
  const batch = new WriteBatch();
  for (const [key, value] of Object.entries(entries)) {
    batch.begin();
    batch.arena.raw(keyOf(key));
    batch.endKey();
    batch.arena.raw(typeof value === 'string' ? Buffer.from(value) : value);
    batch.put();
  }
  return batch;
}

export async function readText(table: StateTable, ...keys: readonly string[]): Promise<(string | undefined)[]> {
  const values = await table.multiGet(packKeys(keys.map(keyOf)));
  return keys.map((_, i) => {
    const value = packedValue(values, i);
    return value === undefined ? undefined : Buffer.from(value).toString();
  });
}

/** The whole table by text of its keys. */
export async function scanText(table: StateTable): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const page of table.scan({ start: new Uint8Array() })) {
    for (let i = 0; i < page.keys.count; i++) {
      const key = Buffer.from(packedItem(page.keys, i)).subarray(2).toString();
      found[key] = Buffer.from(packedItem(page.values, i)).toString();
    }
  }
  return found;
}
