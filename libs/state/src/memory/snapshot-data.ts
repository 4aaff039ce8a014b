import { ByteReader, ByteWriter } from '@millrace/kernel';
import type { StoredEntry } from './sorted-entries.ts';

/** Entries as base64, so that a handle is plain JSON and can be restored in another process. */
export function packEntries(entries: readonly StoredEntry[]): string {
  const writer = new ByteWriter(4096);
  writer.varint(entries.length);
  for (const entry of entries) {
    writer.varint(entry.key.length);
    writer.raw(entry.key);
    writer.varint(entry.value.length);
    writer.raw(entry.value);
    writer.f64le(entry.expiresAtMs);
  }
  return Buffer.from(writer.written()).toString('base64');
}

export function unpackEntries(data: string): StoredEntry[] {
  const reader = new ByteReader(new Uint8Array(Buffer.from(data, 'base64')));
  const entries: StoredEntry[] = [];
  for (let left = reader.varint(); left > 0; left--) {
    const key = reader.raw(reader.varint()).slice();
    const value = reader.raw(reader.varint()).slice();
    entries.push({ key, value, expiresAtMs: reader.f64le() });
  }
  return entries;
}
