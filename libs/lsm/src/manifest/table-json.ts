import type { TableInfo } from '../sst/table-info.ts';
import type { KeyRange } from './key-range.ts';

/** A table's description as plain JSON; keys in base64. */
export interface TableInfoJson extends Omit<TableInfo, 'first' | 'last'> {
  readonly first: string;
  readonly last: string;
}

export interface ClipJson {
  readonly clipStart: string;
  readonly clipEnd?: string;
}

export function tableToJson(info: TableInfo): TableInfoJson {
  return { ...info, first: toBase64(info.first), last: toBase64(info.last) };
}

export function tableFromJson({ first, last, ...info }: TableInfoJson): TableInfo {
  return { ...info, first: fromBase64(first), last: fromBase64(last) };
}

export function clipToJson({ start, end }: KeyRange): ClipJson {
  return { clipStart: toBase64(start), ...(end === undefined ? {} : { clipEnd: toBase64(end) }) };
}

export function clipFromJson({ clipStart, clipEnd }: ClipJson): KeyRange {
  return { start: fromBase64(clipStart), ...(clipEnd === undefined ? {} : { end: fromBase64(clipEnd) }) };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'base64'));
}
