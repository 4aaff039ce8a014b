import type { Random } from '@millrace/kernel';
import type { KeyValue } from '@millrace/state';
import type { Execution } from '../api/execution.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import type { Stream } from '../api/stream.ts';
import { type Field, fields, type Item } from './item.ts';
import type { Facts } from './node.ts';

/** By which fields a stream is keyed, what the keys look like, and how the operator's records overlap. */
export interface KeySpec {
  readonly keys: readonly Field[];
  readonly form: 'plain' | 'text' | 'array' | 'object';
  readonly execution: Execution;
}

const forms: readonly KeySpec['form'][] = ['plain', 'text', 'array', 'object'];
const limits = [1, 2, 7, 100, 6000];

export function draftKey(random: Random, inputs: readonly Facts[]): KeySpec {
  // Mostly by lane, the order of which is known at first.
  const chosen = fields.filter((field) => random.below(6) < (field === 'lane' ? 4 : 3));
  const keys = chosen.length === 0 ? [pick(random, fields)] : chosen;
  const form = keys.length === 1 ? pick(random, forms) : pick(random, forms.slice(1));
  return { keys, form, execution: draftExecution(random, inputs) };
}

function draftExecution(random: Random, inputs: readonly Facts[]): Execution {
  if (random.below(4) === 0) return 'synchronous';
  // With parallel watermarks a late record may come before or after what the watermark fires.
  const parallel = inputs.every(({ time }) => time !== 'exact') && random.below(3) === 0;
  const watermarks = parallel ? 'parallel' : 'serial';
  return random.below(2) === 0 ? { watermarks } : { watermarks, inFlightLimit: pick(random, limits) };
}

/** True when the records of one key come in a known order. */
export function isOrdered({ keys }: KeySpec, { order }: Facts): boolean {
  return order !== undefined && order.every((field) => keys.includes(field));
}

export function keyed(spec: KeySpec, stream: Stream<Item>): KeyedStream<KeyValue, Item> {
  return stream.keyBy<KeyValue>((item) => keyValue(item, spec));
}

export function keyValue(item: Item, { keys, form }: KeySpec): KeyValue {
  if (form === 'plain') return item[keys[0] as Field];
  if (form === 'text') return keyText(item, keys);
  if (form === 'array') return keys.map((field) => item[field]);
  return Object.fromEntries(keys.map((field) => [field, item[field]]));
}

export function keyText(item: Item, keys: readonly Field[]): string {
  return keys.map((field) => `${field}${item[field]}`).join(' ');
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.below(from.length)] as T;
}
