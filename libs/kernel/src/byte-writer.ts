const utf8Encoder = new TextEncoder();

/**
 * A growing byte buffer that codecs append to. Encoders write straight into the arena of a batch, so a value is
 * copied once between the job's object and the frame or memtable that carries it.
 */
export class ByteWriter {
  bytes: Uint8Array;
  view: DataView;
  /** The next byte to write; also the number of bytes written. */
  position = 0;

  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Makes room for `count` more bytes, growing by doubling. */
  reserve(count: number): void {
    const needed = this.position + count;
    if (needed <= this.bytes.length) return;
    let capacity = Math.max(64, this.bytes.length * 2);
    while (capacity < needed) capacity *= 2;
    const grown = new Uint8Array(capacity);
    grown.set(this.bytes.subarray(0, this.position));
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  u8(value: number): void {
    this.reserve(1);
    this.bytes[this.position++] = value;
  }

  u16be(value: number): void {
    this.reserve(2);
    this.view.setUint16(this.position, value);
    this.position += 2;
  }

  u32le(value: number): void {
    this.reserve(4);
    this.view.setUint32(this.position, value, true);
    this.position += 4;
  }

  f64le(value: number): void {
    this.reserve(8);
    this.view.setFloat64(this.position, value, true);
    this.position += 8;
  }

  /** Unsigned LEB128; `value` an integer in [0, 2^53). */
  varint(value: number): void {
    this.reserve(8);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.position++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.bytes[this.position++] = rest;
  }

  raw(source: Uint8Array): void {
    this.range(source, 0, source.length);
  }

  /** The bytes `source[start, end)`. Short ones are copied by hand: a call into the engine costs more. */
  range(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    this.reserve(length);
    const { bytes } = this;
    if (length > 40) {
      bytes.set(new Uint8Array(source.buffer, source.byteOffset + start, length), this.position);
    } else {
      for (let from = start, to = this.position; from < end; from++, to++) bytes[to] = source[from] as number;
    }
    this.position += length;
  }

  /** UTF-8 without a length. Lone surrogates become U+FFFD, as everywhere in the platform. */
  utf8(text: string): void {
    const length = text.length;
    this.reserve(length * 3);
    const bytes = this.bytes;
    let at = this.position;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        this.position = at + utf8Encoder.encodeInto(text.slice(i), bytes.subarray(at)).written;
        return;
      }
      bytes[at++] = code;
    }
    this.position = at;
  }

  /** Forgets what was written and keeps the buffer. */
  reset(): void {
    this.position = 0;
  }

  /** A view of what was written; valid until the next write. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.position);
  }

  /** A copy of what was written. */
  copy(): Uint8Array {
    return this.bytes.slice(0, this.position);
  }
}
