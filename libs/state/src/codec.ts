import type { ByteReader, ByteWriter } from '@millrace/kernel';

/** Reads one value from `reader.position` on and leaves the position behind it. */
export type Decode<T> = (reader: ByteReader) => T;

/**
 * Values to bytes and back. `encode` appends to `writer`; `decode` reads from `reader.position`, finds the value's end
 * itself (values follow each other inside a struct) and must not keep views of the reader's bytes.
 */
export interface Codec<T> {
  /** Stable name of the format and its parameters, written beside stored state so that a restore can be checked. */
  readonly format: string;
  encode(value: T, writer: ByteWriter): void;
  decode(reader: ByteReader): T;
  /**
   * A decoder for what an earlier, compatible format of this codec wrote (`checkCompatible` has been asked before).
   * Without it, a codec reads its own format only.
   */
  decoderOf?(storedFormat: string): Decode<T>;
}

export type CodecType<C> = C extends Codec<infer T> ? T : never;
