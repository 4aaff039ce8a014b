import type { TableInfo } from '../sst/table-info.ts';

/** The description of a table that does not exist. */
export function tableOf(id: string, first: string, last: string, changes: Partial<TableInfo> = {}): TableInfo {
  return {
    file: { id, sizeBytes: 1000, crc32: 0 },
    tailBytes: 100,
    entries: 10,
    tombstones: 0,
    expiring: 0,
    expiresMinMs: 0,
    expiresMaxMs: 0,
    first: Buffer.from(first),
    last: Buffer.from(last),
    ...changes,
  };
}
