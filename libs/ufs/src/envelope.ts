import { crc32 } from 'node:zlib';
import { MillraceError } from '@millrace/kernel';

/**
 * The form of every small object that ufs writes: a line `<format> <crc32 of the body> <bytes of the body>`, then the
 * body as one line of JSON. Readable with `cat`, and damage is noticed before anything is believed.
 */
export function sealEnvelope(format: string, body: unknown): Uint8Array {
  const json = Buffer.from(`${JSON.stringify(body)}\n`);
  const head = Buffer.from(`${format} ${crc32(json).toString(16).padStart(8, '0')} ${json.length}\n`);
  return new Uint8Array(Buffer.concat([head, json]));
}

/** The body of an envelope of `format`; rejects with `ufs-corrupt`, naming `path`, what is not exactly one. */
export function openEnvelope(format: string, path: string, bytes: Uint8Array): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headEnd = buffer.indexOf(0x0a);
  const head = headEnd === -1 ? '' : buffer.toString('latin1', 0, headEnd);
  const [found, checksum, size] = head.split(' ');
  if (checksum === undefined || size === undefined) throw corrupt(path, 'it has no head line');
  if (found !== format) throw corrupt(path, `its format is "${found}", not "${format}"`);
  const body = buffer.subarray(headEnd + 1);
  if (String(body.length) !== size) throw corrupt(path, `it has ${body.length} bytes of ${size}`);
  if (crc32(body).toString(16).padStart(8, '0') !== checksum) throw corrupt(path, 'its checksum does not match');
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (error) {
    throw corrupt(path, 'it is no JSON', error);
  }
}

/** Rejection of a stored object that cannot be believed. */
export function corrupt(path: string, why: string, cause?: unknown): MillraceError {
  return new MillraceError('ufs-corrupt', `${path} is damaged: ${why}`, { details: { path }, cause });
}
