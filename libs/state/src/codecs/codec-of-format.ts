import type { Codec } from '../codec.ts';
import { builtInCodecs } from './built-in.ts';
import { array, nullable, optional } from './composed.ts';
import { parseFormat, type Schema } from './format.ts';
import { struct } from './struct.ts';

/**
 * The codec that writes and reads `format`, without the job's code; undefined when a codec of the job's own is part of
 * it.
 */
export function codecOfFormat(format: string): Codec<unknown> | undefined {
  return codecOf(parseFormat(format));
}

function codecOf(schema: Schema): Codec<unknown> | undefined {
  if (typeof schema === 'string') return builtInCodecs.get(schema);
  if ('struct' in schema) return structOf(schema.struct);
  const [kind, inner] = Object.entries(schema)[0] as [string, Schema];
  const codec = codecOf(inner);
  if (codec === undefined) return undefined;
  if (kind === 'list') return array(codec) as Codec<unknown>;
  return kind === 'optional' ? optional(codec) : nullable(codec);
}

function structOf(fields: readonly (readonly [string, Schema])[]): Codec<unknown> | undefined {
  const codecs: [string, Codec<unknown>][] = [];
  for (const [name, schema] of fields) {
    const codec = codecOf(schema);
    if (codec === undefined) return undefined;
    codecs.push([name, codec]);
  }
  return struct(Object.fromEntries(codecs));
}
