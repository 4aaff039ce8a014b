import { crc32 } from 'node:zlib';
import { MillraceError } from '@millrace/kernel';
import { corrupt } from '../errors.ts';

const footerBytes = 48;
export const formatVersion = 1;
const magic = 'MILLRSST';
const versionAt = 32;
const magicAt = 36;
const crcAt = 44;

export interface Footer {
  readonly filterOffset: number;
  readonly filterLength: number;
  readonly indexOffset: number;
  readonly indexLength: number;
  readonly blocks: number;
  readonly entries: number;
  readonly tombstones: number;
  readonly expiring: number;
}

export function encodeFooter(footer: Footer): Buffer {
  const bytes = Buffer.alloc(footerBytes);
  const fields = [
    footer.filterOffset,
    footer.filterLength,
    footer.indexOffset,
    footer.indexLength,
    footer.blocks,
    footer.entries,
    footer.tombstones,
    footer.expiring,
  ];
  fields.forEach((value, i) => bytes.writeUInt32LE(value, i * 4));
  bytes.writeUInt32LE(formatVersion, versionAt);
  bytes.write(magic, magicAt, 'latin1');
  bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt);
  return bytes;
}

/** Reads the footer at the end of `tail`. */
export function decodeFooter(tail: Uint8Array, file: string): Footer {
  if (tail.length < footerBytes) throw corrupt(file, 'it is shorter than a footer');
  const bytes = Buffer.from(tail.buffer, tail.byteOffset + tail.length - footerBytes, footerBytes);
  if (bytes.toString('latin1', magicAt, crcAt) !== magic) throw corrupt(file, 'it does not end as a table');
  if (bytes.readUInt32LE(crcAt) !== crc32(bytes.subarray(0, crcAt)))
    throw corrupt(file, 'the footer fails its checksum');
  const version = bytes.readUInt32LE(versionAt);
  if (version !== formatVersion) {
    const message = `file ${file} has table format ${version}; this program reads ${formatVersion}`;
    throw new MillraceError('lsm-format', message, { details: { file, version } });
  }
  const field = (i: number): number => bytes.readUInt32LE(i * 4);
  return {
    filterOffset: field(0),
    filterLength: field(1),
    indexOffset: field(2),
    indexLength: field(3),
    blocks: field(4),
    entries: field(5),
    tombstones: field(6),
    expiring: field(7),
  };
}
