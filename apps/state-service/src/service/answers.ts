import { MillraceError } from '@millrace/kernel';
import { errorToWire, type InitOf, messageCodec, TableResponseSchema } from '@millrace/proto';
import type { TableStats } from '@millrace/state';
import { itemBytesMax, tooLarge } from '@millrace/state-remote';

type ResponseInit = InitOf<{ readonly input: typeof TableResponseSchema }>;
/** One part of an answer. */
export type Answer = NonNullable<ResponseInit['kind']>;

const codec = messageCodec(TableResponseSchema);

/** The messages of an answer, encoded. Throws `rpc-too-large` when one is larger than the client takes. */
export function encodeAnswer(sequence: number, parts: readonly Answer[]): Buffer[] {
  return parts.map((kind, i) => {
    const bytes = codec.serialize({ sequence, more: i < parts.length - 1, kind });
    if (bytes.length > itemBytesMax + 32 * 1024) throw tooLarge(bytes.length);
    return bytes;
  });
}

export function encodeError(sequence: number, error: unknown): Buffer {
  return codec.serialize({ sequence, kind: { case: 'error', value: errorToWire(error) } });
}

export function statistics({ entriesEstimate, bytesInMemory, bytesStored }: TableStats): TableStats {
  return { entriesEstimate, bytesInMemory, bytesStored };
}

export function unknownRequest(): MillraceError {
  return new MillraceError('bad-argument', 'a request of a kind that this service does not know');
}
