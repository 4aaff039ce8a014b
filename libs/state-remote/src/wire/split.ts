import { MillraceError } from '@millrace/kernel';
import { messageBytesMaxDefault } from '@millrace/proto';

/** A part of an answer or of a batch is closed at this size, so that one large one does not hold up the others. */
const partBytes = 1024 * 1024;
/** An item larger than a part travels alone; one larger than this not at all. */
export const itemBytesMax = messageBytesMaxDefault - 64 * 1024;

export type Part = readonly [from: number, to: number];

/**
 * Items `[0, count)` in parts of about `partBytes`, in order; no part is empty. `bytesBefore(i)` is the size of the items
 * before `i`. Throws `rpc-too-large` when one item fits no message.
 */
export function splitItems(count: number, bytesBefore: (index: number) => number): Part[] {
  if (bytesBefore(count) - bytesBefore(0) <= partBytes) return count === 0 ? [] : [[0, count]];
  const parts: Part[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const start = bytesBefore(i);
    const end = bytesBefore(i + 1);
    if (end - start > itemBytesMax) throw tooLarge(end - start);
    if (i > from && end - bytesBefore(from) > partBytes) {
      parts.push([from, i]);
      from = i;
    }
  }
  parts.push([from, count]);
  return parts;
}

export function tooLarge(sizeBytes: number): MillraceError {
  const text = `a piece of state of ${sizeBytes} bytes fits no message; allowed are ${itemBytesMax}`;
  return new MillraceError('rpc-too-large', text, { details: { sizeBytes, allowedBytes: itemBytesMax } });
}
