import type { ByteReader, ByteWriter } from '@millrace/kernel';

/*
 * Text inside a key: UTF-8, with lone surrogates as three bytes of their own (WTF-8), so that different strings
 * never share bytes; a zero byte becomes 00 FF and a single 00 ends the text, so that prefixes sort first.
 */

export function writeText(text: string, writer: ByteWriter): void {
  const length = text.length;
  writer.reserve(length * 3 + 1);
  const bytes = writer.bytes;
  let at = writer.position;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80 && unit > 0) {
      bytes[at++] = unit;
    } else if (unit === 0) {
      bytes[at++] = 0;
      bytes[at++] = 0xff;
    } else if (unit < 0x800) {
      bytes[at++] = 0xc0 | (unit >> 6);
      bytes[at++] = 0x80 | (unit & 0x3f);
    } else {
      const point = text.codePointAt(i) as number;
      if (point > 0xffff) {
        bytes[at++] = 0xf0 | (point >> 18);
        bytes[at++] = 0x80 | ((point >> 12) & 0x3f);
        i++;
      } else {
        bytes[at++] = 0xe0 | (point >> 12);
      }
      bytes[at++] = 0x80 | ((point >> 6) & 0x3f);
      bytes[at++] = 0x80 | (point & 0x3f);
    }
  }
  bytes[at++] = 0;
  writer.position = at;
}

export function readText(reader: ByteReader): string {
  let text = '';
  for (;;) {
    const first = reader.u8();
    if (first === 0) {
      if (reader.remaining === 0 || reader.bytes[reader.position] !== 0xff) return text;
      reader.position++;
      text += '\0';
    } else if (first < 0x80) {
      text += String.fromCharCode(first);
    } else if (first < 0xe0) {
      text += String.fromCharCode(((first & 0x1f) << 6) | (reader.u8() & 0x3f));
    } else {
      let point = first < 0xf0 ? first & 0x0f : ((first & 0x07) << 6) | (reader.u8() & 0x3f);
      point = (point << 6) | (reader.u8() & 0x3f);
      text += String.fromCodePoint((point << 6) | (reader.u8() & 0x3f));
    }
  }
}
