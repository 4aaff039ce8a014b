import { MillraceError } from '@millrace/kernel';

/*
 * A format is what `Codec.format` says: a plain name, or for composed codecs the JSON of a schema. It is stored beside
 * the state, so that a later version of the job can tell whether, and how, it can read what an earlier one wrote.
 */

export type Schema =
  | string
  | { readonly list: Schema }
  | { readonly optional: Schema }
  | { readonly nullable: Schema }
  | { readonly struct: readonly (readonly [field: string, schema: Schema])[] };

/** Formats whose values can be read without the codec object, and so skipped when a field is dropped. */
const builtIn = new Set(['int64', 'float64', 'bool', 'string', 'bytes', 'json', 'msgpack', 'key']);

export function parseFormat(format: string): Schema {
  return format.startsWith('{') ? (JSON.parse(format) as Schema) : format;
}

export function formatOf(schema: Schema): string {
  return typeof schema === 'string' ? schema : JSON.stringify(schema);
}

function incompatible(path: string, reason: string): MillraceError {
  const field = path === '' ? 'the value' : `field ${path}`;
  return new MillraceError('state-incompatible', `${field}: ${reason}`, { details: { field: path } });
}

function described(schema: Schema): string {
  if (typeof schema === 'string') return schema;
  if ('list' in schema) return `array(${described(schema.list)})`;
  if ('optional' in schema) return `optional(${described(schema.optional)})`;
  if ('nullable' in schema) return `nullable(${described(schema.nullable)})`;
  return 'struct';
}

/** A field that old state does not have must have a value for its absence. */
function mayBeAbsent(schema: Schema): boolean {
  return typeof schema !== 'string' && ('optional' in schema || 'nullable' in schema);
}

function checkSkippable(schema: Schema, path: string): void {
  if (typeof schema === 'string') {
    if (!builtIn.has(schema)) throw incompatible(path, `was dropped, but only its codec ${schema} can skip it`);
  } else if ('struct' in schema) {
    for (const [field, inner] of schema.struct) checkSkippable(inner, join(path, field));
  } else {
    checkSkippable(Object.values(schema)[0] as Schema, path);
  }
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

function checkSchemas(stored: Schema, current: Schema, path: string): void {
  if (typeof stored === 'string' || typeof current === 'string') {
    if (stored === current || (stored === 'int64' && current === 'float64')) return;
  }
  if (typeof current !== 'string') {
    for (const kind of ['optional', 'nullable'] as const) {
      const inner = (current as { readonly [kind: string]: Schema | undefined })[kind];
      if (inner === undefined) continue;
      const storedInner =
        typeof stored === 'string' ? undefined : (stored as { readonly [kind: string]: Schema })[kind];
      return checkSchemas(storedInner ?? stored, inner, path);
    }
    if (typeof stored !== 'string') {
      if ('list' in stored && 'list' in current) return checkSchemas(stored.list, current.list, `${path}[]`);
      if ('struct' in stored && 'struct' in current) return checkStructs(stored.struct, current.struct, path);
    }
  }
  throw incompatible(path, `was ${described(stored)} and is now ${described(current)}`);
}

type Fields = readonly (readonly [field: string, schema: Schema])[];

function checkStructs(stored: Fields, current: Fields, path: string): void {
  const before = new Map(stored);
  const now = new Map(current);
  for (const [field, schema] of current) {
    const old = before.get(field);
    if (old !== undefined) {
      checkSchemas(old, schema, join(path, field));
    } else if (!mayBeAbsent(schema)) {
      throw incompatible(join(path, field), `is new and ${described(schema)}; make it optional(…) or nullable(…)`);
    }
  }
  for (const [field, schema] of stored) if (!now.has(field)) checkSkippable(schema, join(path, field));
}

/**
 * Throws `state-incompatible`, naming the field, when state written in `stored` cannot be read as `current`. Allowed:
 * adding optional or nullable fields, dropping and reordering fields, making a field optional or nullable,
 * int64 → float64.
 */
export function checkCompatible(stored: string, current: string): void {
  if (stored !== current) checkSchemas(parseFormat(stored), parseFormat(current), '');
}
