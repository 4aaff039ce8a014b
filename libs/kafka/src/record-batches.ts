import { MillraceError } from '@millrace/kernel';
import type { fetchV13, RecordsBatch } from '@platformatic/kafka';
import type { KafkaMessage } from './message.ts';

export type Isolation = 'read-committed' | 'read-uncommitted';

export interface DecodedPartition {
  readonly messages: readonly KafkaMessage[];
  /** Offset to fetch from next: behind what is in here, markers and aborted records included. */
  readonly nextOffset: number;
}

const timestampTypeBit = 0x08;
const transactionalBit = 0x10;
const controlBit = 0x20;
const abortMarker = 0;

/**
 * The messages of one partition of a fetch answer, from `fromOffset` on. A broker sends whole batches, so the first may begin
 * earlier. With `read-committed`, records of aborted transactions are left out: the answer lists those transactions by
 * producer and first offset, and one ends with its marker in the log (Kafka's protocol guide, "Fetch").
 */
export function decodePartition(
  where: { readonly topic: string; readonly partition: number; readonly fromOffset: number },
  answer: Pick<fetchV13.FetchResponsePartition, 'records' | 'abortedTransactions'>,
  isolation: Isolation,
): DecodedPartition {
  const { fromOffset } = where;
  const messages: KafkaMessage[] = [];
  const aborts = isolation === 'read-committed' ? (answer.abortedTransactions ?? []).toSorted(byFirstOffset) : [];
  const aborted = new Set<bigint>();
  let nextAbort = 0;
  let nextOffset = fromOffset;
  for (const batch of answer.records ?? []) {
    const first = Number(batch.firstOffset);
    const last = first + batch.lastOffsetDelta;
    while (nextAbort < aborts.length && Number((aborts[nextAbort] as Aborted).firstOffset) <= last) {
      aborted.add((aborts[nextAbort++] as Aborted).producerId);
    }
    nextOffset = Math.max(nextOffset, last + 1);
    if ((batch.attributes & controlBit) !== 0) {
      if (markerType(batch) === abortMarker) aborted.delete(batch.producerId);
      continue;
    }
    if ((batch.attributes & transactionalBit) !== 0 && aborted.has(batch.producerId)) continue;
    for (const record of batch.records) {
      const offset = first + record.offsetDelta;
      if (offset >= fromOffset) messages.push(messageOf(where, batch, record, offset));
    }
  }
  if (nextOffset > Number.MAX_SAFE_INTEGER) {
    throw new MillraceError('source-position', `${where.topic}/${where.partition}: offset ${nextOffset} is too large`);
  }
  return { messages, nextOffset };
}

type Aborted = NonNullable<fetchV13.FetchResponsePartition['abortedTransactions']>[number];
type RecordOf = RecordsBatch['records'][number];

function byFirstOffset(a: Aborted, b: Aborted): number {
  return Number(a.firstOffset - b.firstOffset);
}

/** A control record's key is version and type, two bytes each. */
function markerType(batch: RecordsBatch): number {
  const key = batch.records[0]?.key;
  return key === null || key === undefined || key.length < 4 ? -1 : key.readInt16BE(2);
}

function messageOf(
  { topic, partition }: { readonly topic: string; readonly partition: number },
  batch: RecordsBatch,
  record: RecordOf,
  offset: number,
): KafkaMessage {
  const appended = (batch.attributes & timestampTypeBit) !== 0;
  const timestampMs = Number(appended ? batch.maxTimestamp : batch.firstTimestamp + record.timestampDelta);
  const headers = record.headers.map(([name, value]) => [name?.toString('utf8') ?? '', value] as const);
  return { topic, partition, offset, timestampMs, key: record.key, value: record.value, headers };
}
