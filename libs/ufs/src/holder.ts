import { corrupt, openEnvelope, sealEnvelope } from './envelope.ts';
import type { FileRef } from './file-store.ts';

/** What keeps a set of files alive: a snapshot of a table, a savepoint, a pin of a fork. Immutable. */
export interface Holder {
  /** Every file that must not be deleted while this holder lives. */
  readonly files: readonly FileRef[];
  /** What the owner needs to make sense of the files (a manifest); plain JSON. */
  readonly value: unknown;
  /** The attempt that wrote it. */
  readonly generation: number;
}

const format = 'millrace-holder/1';

export function encodeHolder(holder: Holder): Uint8Array {
  const files = holder.files.map(({ id, sizeBytes, crc32, home }) => ({ id, sizeBytes, crc32, home }));
  return sealEnvelope(format, { generation: holder.generation, files, value: holder.value ?? null });
}

/** Rejects with `ufs-corrupt` when the bytes are no holder, whatever their checksum says. */
export function decodeHolder(path: string, bytes: Uint8Array): Holder {
  const body = openEnvelope(format, path, bytes);
  if (!isHolder(body)) throw corrupt(path, 'it is no holder');
  return body;
}

function isHolder(body: unknown): body is Holder {
  if (typeof body !== 'object' || body === null) return false;
  const { generation, files } = body as Partial<Record<string, unknown>>;
  return Number.isSafeInteger(generation) && Array.isArray(files) && files.every(isFileRef) && 'value' in body;
}

function isFileRef(file: unknown): file is FileRef {
  if (typeof file !== 'object' || file === null) return false;
  const { id, sizeBytes, crc32, home } = file as Partial<Record<string, unknown>>;
  if (home !== undefined && (typeof home !== 'string' || home === '')) return false;
  return typeof id === 'string' && id !== '' && Number.isSafeInteger(sizeBytes) && Number.isSafeInteger(crc32);
}
