import type { Codec, Decode } from '../codec.ts';

/**
 * A decoder of values that were written in `storedFormat`, as values of `codec`. The formats must have passed
 * `checkCompatible`.
 */
export function decoderFor<T>(codec: Codec<T>, storedFormat: string): Decode<T> {
  if (storedFormat === codec.format || codec.decoderOf === undefined) return (reader) => codec.decode(reader);
  return codec.decoderOf(storedFormat);
}
