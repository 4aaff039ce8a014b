import type { RecordsBatch } from '@platformatic/kafka';
import { expect, test } from 'vitest';
import { PartitionQueue } from './partition-queue.ts';
import { decodePartition } from './record-batches.ts';

const where = { topic: 't', partition: 0, fromOffset: 10 };

function batch(firstOffset: number, values: readonly string[], of: Partial<RecordsBatch> = {}): RecordsBatch {
  return {
    firstOffset: BigInt(firstOffset),
    length: 0,
    partitionLeaderEpoch: 0,
    magic: 2,
    crc: 0,
    attributes: 0,
    lastOffsetDelta: values.length - 1,
    firstTimestamp: 1000n,
    maxTimestamp: 2000n,
    producerId: -1n,
    producerEpoch: 0,
    firstSequence: 0,
    records: values.map((value, offsetDelta) => ({
      length: 0,
      attributes: 0,
      timestampDelta: BigInt(offsetDelta),
      offsetDelta,
      key: null,
      value: Buffer.from(value),
      headers: [],
    })),
    ...of,
  };
}

const transactional = 0x10;
function marker(offset: number, producerId: bigint, commit: boolean): RecordsBatch {
  const [record] = batch(offset, ['']).records;
  const key = Buffer.from([0, 0, 0, commit ? 1 : 0]);
  const records = [{ ...(record as RecordsBatch['records'][number]), key }];
  return batch(offset, [''], { attributes: transactional | 0x20, producerId, records });
}

const values = (decoded: ReturnType<typeof decodePartition>): string[] =>
  decoded.messages.map(({ value, offset }) => `${offset}:${String(value)}`);

test('records before the offset that was asked for are left out', () => {
  const decoded = decodePartition(
    where,
    { records: [batch(8, ['a', 'b', 'c', 'd'])], abortedTransactions: null },
    'read-committed',
  );
  expect(values(decoded)).toEqual(['10:c', '11:d']);
  expect(decoded.nextOffset).toBe(12);
  expect(decoded.messages.map(({ timestampMs }) => timestampMs)).toEqual([1002, 1003]);
});

test('records of aborted transactions are left out, those of the same producer after the abort are not', () => {
  const records = [
    batch(10, ['aborted'], { attributes: transactional, producerId: 7n }),
    batch(11, ['other'], { attributes: transactional, producerId: 8n }),
    batch(12, ['plain']),
    marker(13, 7n, false),
    batch(14, ['again'], { attributes: transactional, producerId: 7n }),
    marker(15, 8n, true),
    marker(16, 7n, true),
  ];
  const answer = { records, abortedTransactions: [{ producerId: 7n, firstOffset: 10n }] };
  const decoded = decodePartition(where, answer, 'read-committed');
  expect(values(decoded)).toEqual(['11:other', '12:plain', '14:again']);
  expect(decoded.nextOffset).toBe(17);
  expect(values(decodePartition(where, answer, 'read-uncommitted'))).toContain('10:aborted');
});

test('the position goes behind markers, so that a bounded read ends at them', () => {
  const split = { id: 't/0', order: 0, data: { topic: 't', partition: 0, startOffset: 10, stopOffset: 13 } };
  const queue = new PartitionQueue(split, 0);
  const { messages, nextOffset } = decodePartition(
    where,
    { records: [batch(10, ['a', 'b']), marker(12, 7n, true)], abortedTransactions: null },
    'read-committed',
  );
  queue.push(messages, nextOffset, 100);
  const taken: number[] = [];
  expect(queue.take(1, ({ offset }) => void taken.push(offset))).toBe(1);
  expect([queue.position, queue.done]).toEqual([11, false]);
  queue.take(10, ({ offset }) => void taken.push(offset));
  expect([taken, queue.position, queue.done, queue.bytes]).toEqual([[10, 11], 13, true, 0]);
});

test('a bounded read stops before records that were appended later', () => {
  const split = { id: 't/0', order: 0, data: { topic: 't', partition: 0, startOffset: 10, stopOffset: 11 } };
  const queue = new PartitionQueue(split, 0);
  queue.push(
    decodePartition(where, { records: [batch(10, ['a', 'b', 'c'])], abortedTransactions: null }, 'read-committed')
      .messages,
    13,
    1,
  );
  const taken: number[] = [];
  queue.take(10, ({ offset }) => void taken.push(offset));
  expect([taken, queue.done, queue.fetchable]).toEqual([[10], true, false]);
});
