import { defaultLsmLimits, type LsmLimits } from '../limits.ts';
import type { LsmTable } from '../table/lsm-table.ts';

/** So small that every step of a table's life happens within a few writes. */
export const tinyLimits: LsmLimits = {
  ...defaultLsmLimits,
  memtableBytes: 16 * 1024,
  pageBytes: 512,
  tables: { ...defaultLsmLimits.tables, blockBytes: 128, tableBytesMax: 2048 },
  compaction: { ...defaultLsmLimits.compaction, l0Runs: 2, levelBytes: 4096, levelFactor: 2, levelsMax: 4 },
};

export function put(table: LsmTable, key: string, value: string, expiresAtMs = 0): void {
  const keyBytes = Buffer.from(key);
  const bytes = Buffer.concat([keyBytes, Buffer.from(value)]);
  table.put(bytes, 0, keyBytes.length, keyBytes.length, bytes.length, expiresAtMs);
}

export function remove(table: LsmTable, key: string): void {
  const bytes = Buffer.from(key);
  table.delete(bytes, 0, bytes.length);
}

/** Values of the keys as text; undefined where absent. */
export async function getMany(table: LsmTable, keys: readonly string[]): Promise<Array<string | undefined>> {
  const parts = keys.map((key) => Buffer.from(key));
  const offsets = Uint32Array.from([0, ...parts.map((part) => part.length)]);
  for (let i = 1; i < offsets.length; i++) offsets[i] = (offsets[i] as number) + (offsets[i - 1] as number);
  const values = await table.multiGet({ count: keys.length, bytes: Buffer.concat(parts), offsets });
  return keys.map((_, i) =>
    values.present[i] === 0
      ? undefined
      : Buffer.from(values.bytes.subarray(values.offsets[i], values.offsets[i + 1])).toString(),
  );
}

export async function get(table: LsmTable, key: string): Promise<string | undefined> {
  return (await getMany(table, [key]))[0];
}

/** Every live entry in `[start, end)`, in the order of the scan. */
export async function scanAll(table: LsmTable, start = '', end?: string): Promise<Array<[string, string]>> {
  return collect(table.scan({ start: Buffer.from(start), end: end === undefined ? undefined : Buffer.from(end) }));
}

export async function collect(pages: ReturnType<LsmTable['scan']>): Promise<Array<[string, string]>> {
  const out: Array<[string, string]> = [];
  for await (const { keys, values } of pages) {
    for (let i = 0; i < keys.count; i++) {
      const key = Buffer.from(keys.bytes.subarray(keys.offsets[i], keys.offsets[i + 1])).toString();
      out.push([key, Buffer.from(values.bytes.subarray(values.offsets[i], values.offsets[i + 1])).toString()]);
    }
  }
  return out;
}
