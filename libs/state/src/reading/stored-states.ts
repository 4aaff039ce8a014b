import { ByteReader } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { codecOfFormat } from '../codecs/codec-of-format.ts';
import type { StateDescriptor } from '../handles/descriptors.ts';
import type { Catalog } from '../keyed/catalog.ts';

/** A state of a table as its catalog tells of it. */
export interface StoredState {
  readonly name: string;
  readonly kind: StateDescriptor['kind'];
  readonly id: number;
  /** Stored in the row of its key, together with other states. */
  readonly inRow: boolean;
  /** Format of the map keys, for maps. */
  readonly keyFormat: string | undefined;
  /** Formats that its values were written in; the last one is current. */
  readonly formats: readonly string[];
}

/** A value that was read; bytes as they are stored where its codec is the job's own. */
export type Decoded = { readonly value: unknown } | { readonly undecoded: Uint8Array; readonly format: string };

export interface DecodedValue {
  readonly decoded: Decoded;
  /** 0: never. */
  readonly expiresAtMs: number;
}

export function statesOf(catalog: Catalog): StoredState[] {
  return Object.entries(catalog.states).map(([name, { id, kind, inRow, keyFormat, formats }]) => ({
    name,
    id,
    kind,
    keyFormat,
    formats,
    inRow: inRow === true,
  }));
}

/** Reads values and keys by the formats that a catalog names. */
export class FormatReader {
  readonly #codecs = new Map<string, Codec<unknown> | undefined>();

  codec(format: string): Codec<unknown> | undefined {
    if (!this.#codecs.has(format)) this.#codecs.set(format, codecOfFormat(format));
    return this.#codecs.get(format);
  }

  /** A stored value: version of its format, expiry, encoded value (`StoredValue`). */
  value(state: StoredState, bytes: Uint8Array): DecodedValue {
    const reader = new ByteReader(bytes);
    const head = reader.u8();
    const expiresAtMs = head >= 0x80 ? reader.f64le() : 0;
    const format = state.formats[head & 0x7f] ?? `unknown version ${head & 0x7f}`;
    return { decoded: this.decode(format, reader), expiresAtMs };
  }

  decode(format: string, reader: ByteReader): Decoded {
    const codec = this.codec(format);
    if (codec !== undefined) return { value: codec.decode(reader) };
    return { undecoded: reader.raw(reader.remaining).slice(), format };
  }
}
