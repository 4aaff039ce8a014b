/** Bytes as a string with one character for each byte: its order as a string is the order of the bytes. */
export function byteString(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1', start, end);
}
