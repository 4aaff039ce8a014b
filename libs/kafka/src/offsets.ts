import { MillraceError } from '@millrace/kernel';
import { listOffsetsV7, offsetFetchV8 } from '@platformatic/kafka';
import type { Cluster } from './cluster.ts';
import { hasAnswer } from './failures.ts';
import type { Isolation } from './record-batches.ts';

/** A place in every partition: its ends, or the first record that is not older than a time. */
export type OffsetSpec = 'earliest' | 'latest' | { readonly timestampMs: number };

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

const earliest = -2n;
const latest = -1n;

/** The offset of `spec` in each partition, in their order. `latest` is one behind the last record that a reader may see. */
export async function listOffsets(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  { spec, isolation }: { readonly spec: OffsetSpec; readonly isolation: Isolation },
): Promise<readonly number[]> {
  const timestamp = spec === 'earliest' ? earliest : spec === 'latest' ? latest : BigInt(spec.timestampMs);
  return Promise.all(
    partitions.map(async (at) => {
      const offset = await offsetAt(cluster, at, { timestamp, isolation });
      // No record is that young.
      return offset >= 0 ? offset : offsetAt(cluster, at, { timestamp: latest, isolation });
    }),
  );
}

async function offsetAt(
  cluster: Cluster,
  { topic, partition }: TopicPartition,
  { timestamp, isolation }: { readonly timestamp: bigint; readonly isolation: Isolation },
): Promise<number> {
  return cluster.persist(`listing offsets of ${topic}/${partition}`, async () => {
    const connection = await cluster.leader(topic, partition);
    const asked = { partitionIndex: partition, currentLeaderEpoch: -1, timestamp };
    const level = isolation === 'read-committed' ? 1 : 0;
    const answer = await listOffsetsV7.api.async(connection, -1, level, [{ name: topic, partitions: [asked] }]);
    return Number(answer.topics[0]?.partitions[0]?.offset ?? -1n);
  });
}

/** What the group has committed for each partition, in their order; undefined where it has nothing. */
export async function committedOffsets(
  cluster: Cluster,
  group: string,
  partitions: readonly TopicPartition[],
): Promise<ReadonlyArray<number | undefined>> {
  const answer = await cluster.persist(`reading the offsets of group ${group}`, async () => {
    const connection = await cluster.coordinator('group', group);
    const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, of]) => ({
      name,
      partitionIndexes: of.map(({ partition }) => partition),
    }));
    // `requireStable`: not while a transaction over these offsets is open.
    const request = { groupId: group, memberId: null, memberEpoch: -1, topics };
    try {
      return await offsetFetchV8.api.async(connection, [request], true);
    } catch (error) {
      if (!hasAnswer(error, 'GROUP_ID_NOT_FOUND')) throw error;
      return undefined;
    }
  });
  return partitions.map(({ topic, partition }) => {
    const found = answer?.groups[0]?.topics.find(({ name }) => name === topic);
    const offset = found?.partitions.find(({ partitionIndex }) => partitionIndex === partition)?.committedOffset ?? -1n;
    return offset < 0n ? undefined : Number(offset);
  });
}

export function checkOffsetSpec(name: string, spec: OffsetSpec): void {
  if (typeof spec === 'string' || (Number.isSafeInteger(spec.timestampMs) && spec.timestampMs >= 0)) return;
  throw new MillraceError(
    'bad-argument',
    `kafka: ${name}.timestampMs must be epoch milliseconds, not ${spec.timestampMs}`,
  );
}
