import { ByteWriter, MillraceError } from '@millrace/kernel';
import type { Codec, CodecType, Decode } from '../codec.ts';
import { decoderFor } from './decoder-for.ts';
import { formatOf, parseFormat, type Schema } from './format.ts';
import { refuse } from './refuse.ts';
import { skipperOf } from './skip.ts';

export type StructFields = Readonly<Record<string, Codec<unknown>>>;

type OptionalFields<F extends StructFields> = {
  [Name in keyof F]: undefined extends CodecType<F[Name]> ? Name : never;
}[keyof F];

type Flat<T> = { [Name in keyof T]: T[Name] };

/** The object type of a struct; fields whose codec is `optional` may be missing. */
export type StructType<F extends StructFields> = Flat<
  { [Name in Exclude<keyof F, OptionalFields<F>>]: CodecType<F[Name]> } & {
    [Name in OptionalFields<F>]?: CodecType<F[Name]>;
  }
>;

type Encode = Codec<unknown>['encode'];
type Fields = readonly (readonly [name: string, codec: Codec<unknown>])[];

/**
 * Builds `encode` and `decode` as straight-line functions: every field is a call of its own that the engine can
 * inline, and decoded objects are literals of one shape. Names enter the source as JSON strings only.
 */
function compile(parameters: readonly string[], values: readonly unknown[], body: string): unknown {
  // oxlint-disable-next-line typescript/no-implied-eval -- the source is made of indices and JSON strings
  return (new Function(...parameters, `"use strict"; return ${body};`) as (...values: readonly unknown[]) => unknown)(
    ...values,
  );
}

function compileEncode(fields: Fields): Encode {
  const calls = fields.map(([name], i) => `c${i}.encode(value[${JSON.stringify(name)}], writer);`);
  return compile(
    fields.map((_, i) => `c${i}`),
    fields.map(([, codec]) => codec),
    `function encode(value, writer) { ${calls.join(' ')} }`,
  ) as Encode;
}

/** A literal with the fields in the struct's order; computed keys, so that `__proto__` is a field like any other. */
function literal(names: readonly string[], valueOf: (index: number) => string): string {
  return `({ ${names.map((name, i) => `${name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)}: ${valueOf(i)}`).join(', ')} })`;
}

function compileDecode(fields: Fields): Decode<unknown> {
  const names = fields.map(([name]) => name);
  return compile(
    fields.map((_, i) => `c${i}`),
    fields.map(([, codec]) => codec),
    `function decode(reader) { return ${literal(names, (i) => `c${i}.decode(reader)`)}; }`,
  ) as Decode<unknown>;
}

/** Reads the fields in the order they were written in, drops those that are gone, and fills in those that are new. */
function compileOldDecode(fields: Fields, stored: readonly (readonly [string, Schema])[]): Decode<unknown> {
  const indexOf = new Map(fields.map(([name], i) => [name, i]));
  const decoders: unknown[] = [];
  const reads = stored.map(([name, schema], i) => {
    const index = indexOf.get(name);
    decoders.push(
      index === undefined ? skipperOf(schema) : decoderFor((fields[index] as Fields[number])[1], formatOf(schema)),
    );
    return index === undefined ? `d${i}(reader);` : `v${index} = d${i}(reader);`;
  });
  const starts = fields.map(
    ([, codec], i) => `let v${i} = ${codec.format.startsWith('{"nullable"') ? 'null' : 'undefined'};`,
  );
  const result = literal(
    fields.map(([name]) => name),
    (i) => `v${i}`,
  );
  return compile(
    stored.map((_, i) => `d${i}`),
    decoders,
    `function decode(reader) { ${starts.join(' ')} ${reads.join(' ')} return ${result}; }`,
  ) as Decode<unknown>;
}

/** Finds the field that made `encode` fail, and names it. */
function explain(fields: Fields, value: unknown, cause: unknown): unknown {
  if (typeof value !== 'object' || value === null) return refuse('struct', value);
  for (const [name, codec] of fields) {
    try {
      codec.encode((value as Record<string, unknown>)[name], new ByteWriter(64));
    } catch (error) {
      const inner = MillraceError.from(error, 'state-bad-value');
      const path = typeof inner.details['field'] === 'string' ? `${name}.${inner.details['field']}` : name;
      const reason = inner.message.replace(/^field \S+: /, '');
      return new MillraceError('state-bad-value', `field ${path}: ${reason}`, {
        details: { field: path },
        cause: error,
      });
    }
  }
  return cause;
}

/**
 * Objects with known fields: compact (no names in the bytes), compiled, and readable by later versions that add
 * optional fields, drop or reorder them. Fields that are not declared are not written.
 */
export function struct<F extends StructFields>(fields: F): Codec<StructType<F>> {
  const list: Fields = Object.entries(fields);
  const encode = compileEncode(list);
  return {
    format: formatOf({ struct: list.map(([name, codec]) => [name, parseFormat(codec.format)] as const) }),
    encode(value, writer) {
      const start = writer.position;
      try {
        encode(value, writer);
      } catch (error) {
        writer.position = start;
        throw explain(list, value, error);
      }
    },
    decode: compileDecode(list) as Decode<StructType<F>>,
    decoderOf(stored) {
      const schema = parseFormat(stored) as Exclude<Schema, string>;
      return compileOldDecode(list, 'struct' in schema ? schema.struct : []) as Decode<StructType<F>>;
    },
  };
}
