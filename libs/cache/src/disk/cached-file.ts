/** An immutable remote file: id, size and checksum say what it holds, the path where to read it. */
export interface CachedFile {
  /** Unique for ever, whatever the path. */
  readonly id: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** CRC-32 of the whole content. */
  readonly crc32: number;
}

const shape = /^([\w.-]{1,160})~(\d{1,15})~([0-9a-f]{8})$/;

/** The name of the copy on the disk; undefined for an id that is no name of a file. A copy of other content has another name. */
export function copyName(file: Omit<CachedFile, 'path'>): string | undefined {
  const name = `${file.id}~${file.sizeBytes}~${file.crc32.toString(16).padStart(8, '0')}`;
  return shape.test(name) ? name : undefined;
}

/** Size of the content that the name of a copy tells; undefined for what is no copy. */
export function contentBytesOf(name: string): number | undefined {
  const match = shape.exec(name);
  return match === null ? undefined : Number(match[2]);
}
