import { MillraceError } from '@millrace/kernel';
import type { TableRequest, TableResponse } from '@millrace/proto';
import type { PackedKeys, PackedValues, ScanPage } from '@millrace/state';
import { bytesOf, plainView, uint32sOf } from './arrays.ts';
import type { Part } from './split.ts';
import { splitItems } from './split.ts';

type Kind<M extends { readonly kind: { readonly case: unknown; readonly value?: unknown } }, C> = Omit<
  Extract<M['kind'], { readonly case: C }>['value'],
  '$typeName' | '$unknown'
>;
export type MultiGetMessage = Kind<TableRequest, 'multiGet'>;
export type WriteMessage = Kind<TableRequest, 'write'>;
export type ValuesMessage = Kind<TableResponse, 'values'>;
export type PageMessage = Kind<TableResponse, 'page'>;

/** Views of items `[from, to)`, their offsets beginning with 0. */
function section(packed: PackedKeys, [from, to]: Part): { bytes: Uint8Array; offsets: Uint8Array } {
  const base = packed.offsets[from] as number;
  const offsets = packed.offsets.slice(from, to + 1);
  if (base !== 0) for (let i = 0; i < offsets.length; i++) offsets[i] = (offsets[i] as number) - base;
  return { bytes: packed.bytes.subarray(base, packed.offsets[to]), offsets: bytesOf(offsets) };
}

/** The items, checked: they come from another process. */
function packedOf(bytes: Uint8Array, offsetBytes: Uint8Array): PackedKeys {
  const offsets = uint32sOf(offsetBytes);
  let fits = offsets.length > 0 && offsets[0] === 0;
  for (let i = 1; i < offsets.length; i++) fits &&= (offsets[i] as number) >= (offsets[i - 1] as number);
  if (!fits || (offsets.at(-1) as number) > bytes.length) {
    throw new MillraceError('bad-argument', 'the offsets of packed items contradict their bytes');
  }
  return { count: offsets.length - 1, bytes: plainView(bytes), offsets };
}

/** A copy: the caller may reuse the keys at once. */
export function keysToWire(keys: PackedKeys): MultiGetMessage {
  const { bytes, offsets } = section(keys, [0, keys.count]);
  return { bytes: Uint8Array.from(bytes), offsets };
}

export function keysFromWire(message: MultiGetMessage): PackedKeys {
  return packedOf(message.bytes, message.offsets);
}

/** Views, in as many parts as they need; at least one. */
export function valuesToWire(values: PackedValues): ValuesMessage[] {
  const parts = splitItems(values.count, (i) => (values.offsets[i] as number) + 5 * i);
  if (parts.length === 0) parts.push([0, 0]);
  return parts.map((part) => ({ ...section(values, part), present: values.present.subarray(...part) }));
}

export function valuesFromWire(messages: readonly ValuesMessage[]): PackedValues {
  const parts = messages.map(({ bytes, offsets, present }): PackedValues => {
    const packed = packedOf(bytes, offsets);
    if (present.length !== packed.count) throw new MillraceError('bad-argument', 'values without their presence');
    return { ...packed, present: plainView(present) };
  });
  return parts.length === 1 ? (parts[0] as PackedValues) : joined(parts);
}

function joined(parts: readonly PackedValues[]): PackedValues {
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.length, 0));
  const offsets = new Uint32Array(count + 1);
  const present = new Uint8Array(count);
  let item = 0;
  let base = 0;
  for (const part of parts) {
    bytes.set(part.bytes, base);
    present.set(part.present, item);
    for (let i = 0; i < part.count; i++) offsets[item + i + 1] = base + (part.offsets[i + 1] as number);
    item += part.count;
    base += part.bytes.length;
  }
  return { count, bytes, offsets, present };
}

/** Views, in as many pages as the sizes ask for. */
export function pageToWire({ keys, values }: ScanPage): PageMessage[] {
  const before = (i: number): number => (keys.offsets[i] as number) + (values.offsets[i] as number) + 8 * i;
  return splitItems(keys.count, before).map((part) => {
    const k = section(keys, part);
    const v = section(values, part);
    return { keys: k.bytes, keyOffsets: k.offsets, values: v.bytes, valueOffsets: v.offsets, last: false };
  });
}

/** The page, or undefined for one that only says that the scan has ended. */
export function pageFromWire(message: PageMessage): ScanPage | undefined {
  if (message.keyOffsets.length === 0) return undefined;
  const keys = packedOf(message.keys, message.keyOffsets);
  const values = packedOf(message.values, message.valueOffsets);
  if (keys.count !== values.count) throw new MillraceError('bad-argument', 'a page with more keys than values');
  return { keys, values: { ...values, present: new Uint8Array(values.count).fill(1) } };
}
