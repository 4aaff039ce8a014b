import type { ByteReader, ByteWriter } from '@millrace/kernel';

/**
 * Values to bytes and back. `encode` appends to `writer`; `decode` reads from `reader.position` up to `reader.end`
 * and must not keep views of the reader's bytes.
 */
export interface Codec<T> {
  /** Stable name of the format and its parameters, written beside stored state so that a restore can be checked. */
  readonly format: string;
  encode(value: T, writer: ByteWriter): void;
  decode(reader: ByteReader): T;
}

export type CodecType<C> = C extends Codec<infer T> ? T : never;
