import type { ByteReader, ByteWriter } from '@millrace/kernel';
import type { Codec, Decode } from '../codec.ts';

/** Format versions of a state fit in seven bits. */
export const versionsMax = 127;

const expiring = 0x80;

/** When the stored value at `start` ends, without decoding it; 0 means never. */
export function storedExpiryMs(view: DataView, start: number): number {
  return view.getUint8(start) >= expiring ? view.getFloat64(start + 1, true) : 0;
}

/**
 * Stored value = version of the format (top bit: has an expiry) · [expiry, 8 bytes] · encoded value. The expiry is there
 * besides that of the store's entry, because values live on in the working set where the store does not see them.
 */
export class StoredValue<T> {
  /** Expiry of the value last decoded; 0 means never. */
  expiresAtMs = 0;
  readonly #codec: Codec<T>;
  readonly #version: number;
  /** Decoders of the earlier formats, by version. */
  readonly #older: readonly Decode<T>[];

  constructor(codec: Codec<T>, version: number, older: readonly Decode<T>[]) {
    this.#codec = codec;
    this.#version = version;
    this.#older = older;
  }

  encode(value: T, expiresAtMs: number, writer: ByteWriter): void {
    if (expiresAtMs === 0) {
      writer.u8(this.#version);
    } else {
      writer.u8(this.#version | expiring);
      writer.f64le(expiresAtMs);
    }
    this.#codec.encode(value, writer);
  }

  decode(reader: ByteReader): T {
    const head = reader.u8();
    this.expiresAtMs = head >= expiring ? reader.f64le() : 0;
    const version = head & 0x7f;
    if (version === this.#version) return this.#codec.decode(reader);
    return (this.#older[version] as Decode<T>)(reader);
  }
}
