import type { PackedBatch, WriteBatch } from '@millrace/state';
import { bytesOf, float64sOf, plainView, uint32sOf } from './arrays.ts';
import type { WriteMessage } from './packed.ts';
import { type Part, splitItems } from './split.ts';

const fieldsPerEntry = 4;
/** Bytes of an entry beside its key and value. */
const entryBytes = 24;

/** A copy of the batch, in as many parts as its size asks for; none of them empty. */
export function batchToWire(batch: WriteBatch): WriteMessage[] {
  const packed = batch.packed();
  const end = packed.arena.length;
  const parts = splitItems(batch.count, (i) => (i < batch.count ? batch.keyStart(i) : end) + entryBytes * i);
  return parts.map((part) => sectionOf(packed, part));
}

/** Entries `[from, to)` with the stretch of the arena that is theirs: batches are written from front to back. */
function sectionOf({ arena, entries, expiry }: PackedBatch, [from, to]: Part): WriteMessage {
  const start = entries[from * fieldsPerEntry] as number;
  const end = entries[(to - 1) * fieldsPerEntry + 2] as number;
  const own = entries.slice(from * fieldsPerEntry, to * fieldsPerEntry);
  if (start !== 0) {
    for (let i = 0; i < own.length; i++) if (i % fieldsPerEntry !== 3) own[i] = (own[i] as number) - start;
  }
  return { arena: arena.slice(start, end), entries: bytesOf(own), expiry: bytesOf(expiry.slice(from, to)) };
}

/** Views; {@link WriteBatch.load} checks them. */
export function batchFromWire({ arena, entries, expiry }: WriteMessage): PackedBatch {
  return { arena: plainView(arena), entries: uint32sOf(entries), expiry: float64sOf(expiry) };
}
