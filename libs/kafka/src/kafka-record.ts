import { MillraceError } from '@millrace/kernel';
import { murmur2 } from '@platformatic/kafka';
import type { OutgoingMessage } from './transactions.ts';

/** A record for Kafka. Text is written as UTF-8; a null value is a tombstone. */
export interface KafkaRecord {
  readonly key?: string | Uint8Array | null | undefined;
  readonly value: string | Uint8Array | null;
  readonly headers?: Readonly<Record<string, string | Uint8Array>> | undefined;
  /** Default: by the key's hash, as Kafka's own producer does it; without a key, in turns. */
  readonly partition?: number | undefined;
  /** Default: the sink's topic. */
  readonly topic?: string | undefined;
  /** Epoch milliseconds. Default: the record's event time, or now where it has none. */
  readonly timestampMs?: number | undefined;
}

export function outgoing(
  record: KafkaRecord,
  to: { readonly topic: string; readonly partitions: number; readonly timestampMs: number; readonly turn: number },
): OutgoingMessage {
  const key = record.key === null || record.key === undefined ? undefined : bufferOf(record.key);
  const partition = record.partition ?? (key === undefined ? to.turn : murmur2(key) & 0x7fffffff) % to.partitions;
  if (!Number.isInteger(partition) || partition < 0 || partition >= to.partitions) {
    throw new MillraceError('bad-argument', `kafka: ${to.topic} has ${to.partitions} partitions, not ${partition}`);
  }
  return {
    topic: to.topic,
    partition,
    key,
    value: record.value === null ? null : bufferOf(record.value),
    headers:
      record.headers === undefined
        ? undefined
        : new Map(Object.entries(record.headers).map(([name, value]) => [Buffer.from(name), bufferOf(value)])),
    timestampMs: record.timestampMs ?? to.timestampMs,
  };
}

function bufferOf(data: string | Uint8Array): Buffer {
  return typeof data === 'string'
    ? Buffer.from(data, 'utf8')
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
