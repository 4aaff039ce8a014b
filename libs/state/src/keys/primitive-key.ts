import { ByteWriter } from '@millrace/kernel';
import { keyCodec } from './key-codec.ts';
import type { KeyValue } from './key-value.ts';

/** What a JavaScript `Map` compares by value. */
export type PrimitiveKey = string | number | bigint | boolean | null;

const writer = new ByteWriter(128);

/**
 * A key as the key of a JavaScript `Map`: primitives as they are (a Map already takes −0 for 0 and NaN for NaN), others as
 * a string of their canonical bytes. A marker behind a zero character keeps those apart from plain strings.
 */
export function primitiveKey(key: unknown): PrimitiveKey {
  switch (typeof key) {
    case 'string':
      return key.charCodeAt(0) === 0 ? `\0s${key}` : key;
    case 'number':
    case 'bigint':
    case 'boolean':
      return key;
    default:
      if (key === null) return null;
      writer.reset();
      keyCodec.encode(key as KeyValue, writer);
      return `\0c${Buffer.from(writer.bytes.buffer, 0, writer.position).toString('latin1')}`;
  }
}
