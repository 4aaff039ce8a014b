import { BlockCache } from '@millrace/cache';
import { expect, test } from 'vitest';
import { keyHash } from '../memtable/memtable.ts';
import { MemoryFileStore } from '../testing/memory-file-store.ts';
import { formatVersion } from './footer.ts';
import { SstCursor } from './sst-cursor.ts';
import { SstReader } from './sst-reader.ts';
import { SstWriter } from './sst-writer.ts';
import { defaultTableOptions, type TableInfo } from './table-info.ts';

const entries: ReadonlyArray<readonly [key: string, value: string | undefined, expiresAtMs: number]> = [
  ['', 'the empty key', 0],
  ['a', '', 0],
  ['ab', 'expires', 1_700_000_000_123],
  ['b', undefined, 0],
  ['key', 'x'.repeat(300), 0],
  ['kez', 'last', 2 ** 48 - 1],
];

/**
 * Format version 1, byte for byte: a file that any later version has to read. Only its LZ4 blocks may legitimately be
 * written in another way one day.
 */
const golden = [
  'iAEAAPEHAAAADQAAAHRoZSBlbXB0eSBrZXkBAAEA8QphAgACBwAAAHto5c+LAWFiZXhwaXJlcwEAIADPYgMAACwBAABrZXl4AQD/',
  'GQBaAfAFFAAAABwAAAAyAAAAOgAAAAUAAAAB2vAtFgMAAgQAAAD///////9rZXpsYXN0AAAAAAEAAAAACO8HLwEAEAAAQAQAAAAA',
  'IAAAAACAAgAgAAAACABQAhAAAAACgAAAAAAAAAAIAAAAAARggQAAAQAAmAQAAAAAAAQBABIAOTptswAAAABqAAAAAAADAGtleWoA',
  'AAAhAAAAAwADAGtlemtlegANWJYpiwAAAEUAAADQAAAAJgAAAAIAAAAGAAAAAQAAAAIAAAABAAAATUlMTFJTU1Sgybrb',
].join('');

async function writeTable(files: MemoryFileStore): Promise<TableInfo> {
  const options = { ...defaultTableOptions, blockBytes: 64 };
  const writer = new SstWriter(await files.create(), options);
  for (const [key, value, expiresAtMs] of entries) {
    const bytes = Buffer.from(key + (value ?? ''));
    const keyEnd = Buffer.byteLength(key);
    const hash = keyHash(bytes, 0, keyEnd);
    await writer.add(hash, bytes, 0, keyEnd, keyEnd, bytes.length, value === undefined, expiresAtMs);
  }
  return writer.finish();
}

async function readTable(info: TableInfo, files: MemoryFileStore): Promise<unknown[]> {
  const reader = new SstReader(info, files, new BlockCache({ bytesMax: 1 << 20 }));
  const cursor = new SstCursor(reader, {
    range: { start: new Uint8Array() },
    readAhead: { firstBytes: 1, limitBytes: 1024, keptBlocks: 100 },
  });
  const out: unknown[] = [];
  await cursor.open();
  for (; cursor.valid; await cursor.next()) {
    const key = Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)).toString();
    const value = Buffer.from(cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd)).toString();
    out.push([key, cursor.isTombstone ? undefined : value, cursor.expiresAtMs]);
    const bytes = Buffer.from(key);
    const hash = keyHash(bytes, 0, bytes.length);
    const block = reader.blockOf(hash, bytes, 0, bytes.length);
    const found = reader.cached(block);
    const into = { bytes, start: 0, end: 0 };
    expect(found && reader.lookUp(found, hash, bytes, 0, bytes.length, 0, into)).toBe(
      cursor.isTombstone ? 'hidden' : 'found',
    );
  }
  reader.close();
  return out;
}

test('a table written now is the golden file of its format version', async () => {
  const files = new MemoryFileStore();
  const info = await writeTable(files);
  expect(formatVersion).toBe(1);
  expect(Buffer.from(files.files.get(info.file.id) as Uint8Array).toString('base64')).toBe(golden);
});

test('the golden file is read whole, by scan and by key', async () => {
  const files = new MemoryFileStore();
  const info = await writeTable(files);
  files.files.set(info.file.id, Buffer.from(golden, 'base64'));
  expect(await readTable(info, files)).toEqual(entries);
});

test('what the manifest keeps of a table', async () => {
  const { file, tailBytes, ...info } = await writeTable(new MemoryFileStore());
  expect(tailBytes).toBeLessThan(file.sizeBytes);
  expect(info).toEqual({
    entries: 6,
    tombstones: 1,
    expiring: 2,
    expiresMinMs: 1_700_000_000_123,
    expiresMaxMs: 2 ** 48 - 1,
    first: new Uint8Array(),
    last: Uint8Array.from(Buffer.from('kez')),
  });
});

test('a table of a later format is refused by number', async () => {
  const files = new MemoryFileStore();
  const info = await writeTable(files);
  const { crc32 } = await import('node:zlib');
  const bytes = Buffer.from(files.files.get(info.file.id) as Uint8Array);
  bytes.writeUInt32LE(2, bytes.length - 16);
  bytes.writeUInt32LE(crc32(bytes.subarray(bytes.length - 48, bytes.length - 4)), bytes.length - 4);
  files.files.set(info.file.id, bytes);
  const reader = new SstReader(info, files, new BlockCache({ bytesMax: 0 }));
  await expect(reader.open()).rejects.toMatchObject({ code: 'lsm-format', details: { version: 2 } });
});
