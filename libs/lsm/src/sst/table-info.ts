import type { FileRef } from '@millrace/ufs';

/** What the manifest knows of a table without reading it. */
export interface TableInfo {
  readonly file: FileRef;
  /** Filter, index and footer, the end of the file: one read opens the table. */
  readonly tailBytes: number;
  readonly entries: number;
  readonly tombstones: number;
  /** Entries with an expiry, and the first and last of these; 0 when there are none. */
  readonly expiring: number;
  readonly expiresMinMs: number;
  readonly expiresMaxMs: number;
  /** Smallest and largest key, both present in the table. */
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

export interface TableOptions {
  /** A block ends with the entry that takes it to this size, before compression; at most 32 KiB. */
  readonly blockBytes: number;
  /** A table ends with the block that takes it to this size. */
  readonly tableBytesMax: number;
  readonly bloomBitsPerKey: number;
  readonly compress: boolean;
}

export const defaultTableOptions: TableOptions = {
  blockBytes: 8 * 1024,
  tableBytesMax: 32 * 1024 * 1024,
  bloomBitsPerKey: 10,
  compress: true,
};
