import type { Codec } from '../codec.ts';
import { decoderFor } from './decoder-for.ts';
import { formatOf, parseFormat, type Schema } from './format.ts';
import { refuse } from './refuse.ts';

/** The schema inside `{ [kind]: … }`; undefined when `format` is of another kind. */
function innerFormat(format: string, kind: 'list' | 'optional' | 'nullable'): string | undefined {
  const schema = parseFormat(format);
  if (typeof schema === 'string') return undefined;
  const inner = (schema as { readonly [kind: string]: Schema | undefined })[kind];
  return inner === undefined ? undefined : formatOf(inner);
}

/** Arrays of one type of item. */
export function array<T>(item: Codec<T>): Codec<readonly T[]> {
  return arrayOf(item, (reader) => item.decode(reader));
}

function arrayOf<T>(item: Codec<T>, decodeItem: Codec<T>['decode']): Codec<readonly T[]> {
  return {
    format: formatOf({ list: parseFormat(item.format) }),
    encode(value, writer) {
      if (!Array.isArray(value)) throw refuse('array', value);
      writer.varint(value.length);
      for (let i = 0; i < value.length; i++) item.encode(value[i] as T, writer);
    },
    decode(reader) {
      const length = reader.varint();
      const out: T[] = [];
      for (let i = 0; i < length; i++) out.push(decodeItem(reader));
      return out;
    },
    decoderOf(stored) {
      const inner = innerFormat(stored, 'list') as string;
      const old = arrayOf(item, decoderFor(item, inner));
      return (reader) => old.decode(reader);
    },
  };
}

function maybe<T, Nothing extends null | undefined>(
  kind: 'optional' | 'nullable',
  item: Codec<T>,
  nothing: Nothing,
): Codec<T | Nothing> {
  const schema = parseFormat(item.format);
  return {
    format: formatOf(kind === 'optional' ? { optional: schema } : { nullable: schema }),
    encode(value, writer) {
      if (value === nothing) {
        writer.u8(0);
      } else {
        writer.u8(1);
        item.encode(value as T, writer);
      }
    },
    decode: (reader) => (reader.u8() === 0 ? nothing : item.decode(reader)),
    decoderOf(stored) {
      const inner = innerFormat(stored, kind);
      if (inner === undefined) return decoderFor(item, stored);
      const decode = decoderFor(item, inner);
      return (reader) => (reader.u8() === 0 ? nothing : decode(reader));
    },
  };
}

/** A value or `undefined`: in a struct, a field that may be missing. */
export function optional<T>(item: Codec<T>): Codec<T | undefined> {
  return maybe('optional', item, undefined);
}

/** A value or `null`. */
export function nullable<T>(item: Codec<T>): Codec<T | null> {
  return maybe('nullable', item, null);
}
