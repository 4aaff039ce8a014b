import { MillraceError } from '@millrace/kernel';
import type { Decode } from '../codec.ts';
import { builtInCodecs } from './built-in.ts';
import type { Schema } from './format.ts';

/** Moves a reader past one value of `schema`: for struct fields that the job no longer has. */
export function skipperOf(schema: Schema): Decode<void> {
  if (typeof schema === 'string') {
    const codec = builtInCodecs.get(schema);
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
