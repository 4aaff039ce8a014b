import { ByteReader, type ByteWriter, compareBytes } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { keyCodec } from '../keys/key-codec.ts';
import { prefixLength, readLength, writePrefix } from '../keys/key-layout.ts';
import type { KeyValue } from '../keys/key-value.ts';
import { readOrderedNumber, writeOrderedNumber } from '../keys/ordered-number.ts';

/** A timer in memory. */
export interface QueuedTimer {
  readonly timeMs: number;
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  /** length · key · length · namespace, as in stored keys. */
  readonly suffix: Uint8Array;
}

/** By time, then by key: the order of the stored keys of one key group. */
export function compareTimers(a: QueuedTimer, b: QueuedTimer): number {
  if (a.timeMs !== b.timeMs) return a.timeMs < b.timeMs ? -1 : 1;
  return compareBytes(a.suffix, b.suffix);
}

/** Key group · state id of the timers · time · length · key · length · namespace. */
export function writeTimerKey(writer: ByteWriter, keyGroup: number, stateId: number, timer: QueuedTimer): void {
  writePrefix(writer, keyGroup, stateId);
  writeOrderedNumber(writer, timer.timeMs);
  writer.raw(timer.suffix);
}

export function parseTimer(storedKey: Uint8Array, keyCodecOfTable: Codec<unknown>): QueuedTimer {
  const reader = new ByteReader(storedKey, prefixLength);
  const timeMs = readOrderedNumber(reader);
  const suffix = storedKey.slice(reader.position);
  const key = part(reader, keyCodecOfTable);
  const namespace = part(reader, keyCodec) as KeyValue | undefined;
  return { timeMs, key, namespace, suffix };
}

/** A sized part, decoded; undefined when it is empty. */
function part(reader: ByteReader, codec: Codec<unknown>): unknown {
  const length = readLength(reader);
  const end = reader.position + length;
  const value = length === 0 ? undefined : codec.decode(new ByteReader(reader.bytes, reader.position, end));
  reader.position = end;
  return value;
}
