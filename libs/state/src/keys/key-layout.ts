import { type ByteReader, type ByteWriter, prefixEnd } from '@millrace/kernel';

/*
 * Stored key = key group (2, big-endian) · state id (2, big-endian) · length · key · length · namespace · map key.
 * The parts before the map key carry their length, so that all map entries of a (key, namespace) are one range, and all
 * keys of a state in a key group another; the map key is last and needs none, so its own order is kept.
 * Timers put their time (8 bytes, in order) in front of the key.
 */

/** Ids from here on are the runtime's own. */
export const stateIdsReserved = 0xff00;
export const catalogStateId = 0xff00;
export const eventTimerStateId = 0xff01;
export const processingTimerStateId = 0xff02;
/** The single values of a key that are stored together. */
export const rowStateId = 0xff03;

export const prefixLength = 4;

export function writePrefix(writer: ByteWriter, keyGroup: number, stateId: number): void {
  writer.u16be(keyGroup);
  writer.u16be(stateId);
}

const longLength = 0x8000_0000;

/** A length in an order-keeping form: one byte below 128, else four with the top bit set. */
export function writeLength(writer: ByteWriter, length: number): void {
  if (length < 0x80) {
    writer.u8(length);
  } else {
    writer.reserve(4);
    writer.view.setUint32(writer.position, (length | longLength) >>> 0);
    writer.position += 4;
  }
}

export function readLength(reader: ByteReader): number {
  const first = reader.bytes[reader.position] as number;
  if (first < 0x80) return reader.u8();
  const length = reader.view.getUint32(reader.position) & 0x7fff_ffff;
  reader.position += 4;
  return length;
}

/** Writes a part with its length in front; `write` appends the part itself. */
export function writeSized(writer: ByteWriter, part: Uint8Array): void {
  writeLength(writer, part.length);
  writer.raw(part);
}

/** The parts of a stored key of a value, list or map state, as views of `reader`'s bytes. */
export interface StoredKey {
  readonly keyGroup: number;
  readonly stateId: number;
  readonly key: Uint8Array;
  readonly namespace: Uint8Array;
  readonly mapKey: Uint8Array;
}

export function parseStoredKey(reader: ByteReader): StoredKey {
  const keyGroup = reader.u16be();
  const stateId = reader.u16be();
  const key = reader.raw(readLength(reader));
  const namespace = reader.raw(readLength(reader));
  return { keyGroup, stateId, key, namespace, mapKey: reader.raw(reader.remaining) };
}

export interface ByteRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array | undefined;
}

/** All stored keys that start with `prefix`. */
export function rangeOfPrefix(prefix: Uint8Array): ByteRange {
  return { start: prefix, end: prefixEnd(prefix) };
}
