import { type Clock, MillraceError, systemClock } from '@millrace/kernel';
import {
  type Codec,
  type Duration,
  durationMs,
  msgpack,
  type ReaderContext,
  type Source,
  type Split,
  type SplitPosition,
} from '@millrace/streams';
import { Cluster } from './cluster.ts';
import { KafkaReader } from './kafka-reader.ts';
import type { KafkaMessage } from './message.ts';
import { checkOffsetSpec, committedOffsets, listOffsets, type OffsetSpec, type TopicPartition } from './offsets.ts';
import type { KafkaSplitData } from './partition-queue.ts';
import type { Isolation } from './record-batches.ts';
import { type ClusterSettings, clusterSettings, type KafkaConnection, positive } from './settings.ts';

export interface KafkaSourceOptions<T> extends KafkaConnection {
  readonly topics: readonly string[];
  /** The record in a message; undefined skips the message. `jsonValue` decodes JSON. */
  readonly decode: (message: KafkaMessage) => T | undefined;
  readonly codec?: Codec<T>;
  /**
   * Where an empty start begins; after that, checkpoints say. `committed`: where the group stands, and at the earliest where it
   * has nothing. Default `earliest`.
   */
  readonly start?: OffsetSpec | 'committed' | undefined;
  /** Ends the source at these offsets, as they are at an empty start; absent: it never ends. */
  readonly stop?: Exclude<OffsetSpec, 'earliest'> | undefined;
  /**
   * Offsets of registered checkpoints are committed to this group, for lag monitoring. The group has no members: partitions
   * are dealt to subtasks, not by Kafka.
   */
  readonly group?: string | undefined;
  /** Default `read-committed`: records of open transactions are waited for, those of aborted ones left out. */
  readonly isolation?: Isolation | undefined;
  /** How often to look for new partitions, which are read from their start; absent: never. Not with `stop`. */
  readonly discover?: Duration | undefined;
  /** When the next records have been deleted by the topic's retention. Default `fail`. */
  readonly missing?: 'fail' | 'earliest' | undefined;
  /** Bytes of records that a subtask may hold that were fetched and not yet taken. Default 16 MiB. */
  readonly bufferBytes?: number | undefined;
  readonly recordsPerSecond?: number | undefined;
}

const partitionsMax = 32_768;

/**
 * Topics of a Kafka cluster. A split is a partition, dealt to the subtasks in order; its position is an offset, kept in
 * checkpoints. Event time is what `timestamp` of the stream says; each partition has its own watermark.
 */
export function kafkaSource<T>(options: KafkaSourceOptions<T>): Source<T> {
  const settings = clusterSettings(options);
  const { codec = msgpack<T>(), recordsPerSecond } = options;
  const discoverMs = check(options);
  return {
    kind: 'kafka',
    codec,
    recordsPerSecond,
    splits: () => withCluster(settings, systemClock, (cluster) => findSplits(cluster, options)),
    open: async (positions, context) => openReader(positions, context, { options, settings, discoverMs }),
  };
}

function check<T>(options: KafkaSourceOptions<T>): number | undefined {
  const refuse = (message: string): never => {
    throw new MillraceError('bad-argument', `kafka: ${message}`);
  };
  const { topics, start = 'earliest', stop, group, discover } = options;
  if (topics.length === 0) refuse('topics must not be empty');
  if (new Set(topics).size < topics.length) refuse('a topic is named twice');
  if (start === 'committed' && group === undefined) refuse("start: 'committed' needs a group");
  if (start !== 'committed') checkOffsetSpec('start', start);
  if (stop !== undefined) checkOffsetSpec('stop', stop);
  if (discover !== undefined && stop !== undefined) refuse('discover and stop exclude each other');
  positive('bufferBytes', options.bufferBytes ?? 1);
  return discover === undefined ? undefined : positive('discover', durationMs(discover, 'discover'));
}

async function withCluster<R>(
  settings: ClusterSettings,
  clock: Clock,
  work: (cluster: Cluster) => Promise<R>,
): Promise<R> {
  const cluster = new Cluster(settings, clock);
  try {
    return await work(cluster);
  } finally {
    await cluster.close();
  }
}

/** Every partition, topic after topic within the partitions of one number, so that new ones come last. */
async function partitionsOf(cluster: Cluster, topics: readonly string[]): Promise<readonly TopicPartition[]> {
  const found = await cluster.persist('reading the topics', () => cluster.topics(topics, 'fresh'));
  const all = topics.flatMap((topic) =>
    (found.get(topic)?.leaders ?? []).map((_, partition): TopicPartition => ({ topic, partition })),
  );
  if (all.length <= partitionsMax) return all.toSorted((a, b) => a.partition - b.partition);
  throw new MillraceError('bad-argument', `kafka: ${all.length} partitions are more than ${partitionsMax}`);
}

async function findSplits<T>(cluster: Cluster, options: KafkaSourceOptions<T>): Promise<readonly Split[]> {
  const { start = 'earliest', stop, isolation = 'read-committed' } = options;
  const partitions = await partitionsOf(cluster, options.topics);
  const starts = await startOffsets(cluster, partitions, { start, isolation, group: options.group });
  const stops = stop === undefined ? undefined : await listOffsets(cluster, partitions, { spec: stop, isolation });
  return partitions.map((at, order) =>
    splitOf(at, order, { startOffset: starts[order] as number, stopOffset: stops?.[order] }),
  );
}

async function startOffsets(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  { start, isolation, group }: { start: OffsetSpec | 'committed'; isolation: Isolation; group: string | undefined },
): Promise<readonly number[]> {
  if (start !== 'committed') return listOffsets(cluster, partitions, { spec: start, isolation });
  const [committed, earliest] = await Promise.all([
    committedOffsets(cluster, group as string, partitions),
    listOffsets(cluster, partitions, { spec: 'earliest', isolation }),
  ]);
  return earliest.map((offset, index) => committed[index] ?? offset);
}

function splitOf(
  { topic, partition }: TopicPartition,
  order: number,
  { startOffset, stopOffset }: { readonly startOffset: number; readonly stopOffset?: number | undefined },
): Split {
  const data: KafkaSplitData = {
    topic,
    partition,
    startOffset,
    ...(stopOffset === undefined ? {} : { stopOffset: Math.max(startOffset, stopOffset) }),
  };
  return { id: `${topic}/${partition}`, order, data };
}

interface Opening<T> {
  readonly options: KafkaSourceOptions<T>;
  readonly settings: ClusterSettings;
  readonly discoverMs: number | undefined;
}

function openReader<T>(
  positions: readonly SplitPosition[],
  context: ReaderContext,
  { options, settings, discoverMs }: Opening<T>,
): KafkaReader<T> {
  const cluster = new Cluster(settings, context.clock);
  const { stop, isolation = 'read-committed', missing = 'fail', bufferBytes = 16 * 1024 * 1024 } = options;
  // With neither an end nor discovery, a subtask without partitions is at its end; one with partitions never is.
  const known = new Set(context.known);
  const find = async (): Promise<readonly Split[]> => {
    const all = (await partitionsOf(cluster, options.topics)).map((at, order) =>
      splitOf(at, order, { startOffset: 0 }),
    );
    const fresh = all.filter(({ id }) => !known.has(id));
    for (const { id } of fresh) known.add(id);
    // The same deal for every subtask, whenever it looks.
    return fresh.filter(({ order }) => order % context.parallelism === context.subtask);
  };
  return new KafkaReader(cluster, positions, {
    fetch: { isolation, bufferBytes, missing, waitMaxMs: Math.min(500, Math.floor(settings.requestTimeoutMs / 2)) },
    decode: options.decode,
    group: options.group,
    discover: stop === undefined && discoverMs !== undefined ? { everyMs: discoverMs, find } : undefined,
  });
}
