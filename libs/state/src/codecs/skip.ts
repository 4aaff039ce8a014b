import { MillraceError } from '@millrace/kernel';
import type { Codec, Decode } from '../codec.ts';
import { keyCodec } from '../keys/key-codec.ts';
import type { Schema } from './format.ts';
import { msgpack } from './msgpack.ts';
import { bool, bytes, float64, int64, json, string } from './primitives.ts';

const byName = new Map<string, Codec<unknown>>(
  [int64, float64, bool, string, bytes, json(), msgpack(), keyCodec].map((codec) => [
    codec.format,
    codec as Codec<unknown>,
  ]),
);

/** Moves a reader past one value of `schema`: for struct fields that the job no longer has. */
export function skipperOf(schema: Schema): Decode<void> {
  if (typeof schema === 'string') {
    const codec = byName.get(schema);
    if (codec === undefined)
      throw new MillraceError('state-incompatible', `a value of format ${schema} cannot be skipped`);
    return (reader) => void codec.decode(reader);
  }
  if ('struct' in schema) {
    const skippers = schema.struct.map(([, inner]) => skipperOf(inner));
    return (reader) => {
      for (const skip of skippers) skip(reader);
    };
  }
  if ('list' in schema) {
    const skip = skipperOf(schema.list);
    return (reader) => {
      for (let left = reader.varint(); left > 0; left--) skip(reader);
    };
  }
  const skip = skipperOf('optional' in schema ? schema.optional : schema.nullable);
  return (reader) => {
    if (reader.u8() !== 0) skip(reader);
  };
}
