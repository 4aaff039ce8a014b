import type { Decoded } from '@millrace/state';

/** A value as JSON that can be typed back in: what JSON does not know is an object with one `$` field. */
export function toPlain(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return { $bigint: String(value) };
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $number: Object.is(value, -0) ? '-0' : String(value) };
    case 'undefined':
      return null;
    case 'object':
      return value === null ? null : objectToPlain(value);
    default:
      return value;
  }
}

function objectToPlain(value: object): unknown {
  if (Array.isArray(value)) return value.map((item) => toPlain(item));
  if (value instanceof Date) return { $date: Number.isNaN(value.getTime()) ? null : value.toISOString() };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') };
  if (value instanceof Map) return { $map: [...value].map(([key, item]) => [toPlain(key), toPlain(item)]) };
  if (value instanceof Set) return { $set: [...value].map((item) => toPlain(item)) };
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toPlain(item)]));
}

/** What was read of a value, or its bytes with the name of the format that only the job can read. */
export function decodedToPlain(decoded: Decoded): unknown {
  if ('value' in decoded) return toPlain(decoded.value);
  return { $bytes: Buffer.from(decoded.undecoded).toString('base64'), $format: decoded.format };
}

/** A key as a person writes it: JSON as {@link toPlain} writes it, else the text itself. */
export function parseKey(text: string): unknown {
  try {
    return fromPlain(JSON.parse(text));
  } catch {
    return text;
  }
}

function fromPlain(json: unknown): unknown {
  if (Array.isArray(json)) return json.map((item) => fromPlain(item));
  if (typeof json !== 'object' || json === null) return json;
  const entries = Object.entries(json);
  const [name, value] = entries[0] ?? [];
  if (entries.length === 1 && typeof value === 'string') {
    if (name === '$bigint') return BigInt(value);
    if (name === '$number') return Number(value);
    if (name === '$date') return new Date(value);
    if (name === '$bytes') return Uint8Array.from(Buffer.from(value, 'base64'));
  }
  return Object.fromEntries(entries.map(([field, item]) => [field, fromPlain(item)]));
}
