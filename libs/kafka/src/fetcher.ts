import { MillraceError } from '@millrace/kernel';
import { type ConnectionPool, fetchV13 } from '@platformatic/kafka';
import type { Cluster } from './cluster.ts';
import { hasAnswer, isTransient, kafkaError } from './failures.ts';
import { listOffsets } from './offsets.ts';
import type { PartitionQueue } from './partition-queue.ts';
import { decodePartition, type Isolation } from './record-batches.ts';
import { Deadline } from './settings.ts';

export interface FetchSettings {
  readonly isolation: Isolation;
  /** Bytes that may be fetched and not emitted, over all partitions of a subtask. */
  readonly bufferBytes: number;
  /** How long a broker may wait for records. */
  readonly waitMaxMs: number;
  /** What to do when the records at a position are gone. */
  readonly missing: 'fail' | 'earliest';
}

const partitionBytesMax = 1024 * 1024;
const partitionBytesMin = 64 * 1024;
const answerBytesMax = 8 * 1024 * 1024;
const pauseMs = 100;

/**
 * Fills the queues of one subtask's partitions: one request at a time to each broker, on connections of their own, because
 * a broker answers a fetch late when there is nothing. A partition is asked for only while its queue is short, so what
 * waits is bounded: twice its share, or one batch of the producer if that is larger.
 */
export class Fetcher {
  readonly #cluster: Cluster;
  readonly #settings: FetchSettings;
  readonly #queues: PartitionQueue[] = [];
  readonly #pool: ConnectionPool;
  readonly #busy = new Set<number>();
  readonly #changed: (failure?: unknown) => void;
  /** When the current run of failures has to be over. */
  #patience: Deadline | undefined;
  #assigning = false;
  #again = false;
  #closed = false;

  /** `changed`: there is something to read, or it has failed for good. */
  constructor(cluster: Cluster, settings: FetchSettings, changed: (failure?: unknown) => void) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#pool = cluster.pool();
    this.#changed = changed;
  }

  add(queue: PartitionQueue): void {
    this.#queues.push(queue);
  }

  /** Asks for what is missing. Returns at once. */
  fill(): void {
    if (this.#closed) return;
    this.#again = this.#assigning;
    if (this.#assigning) return;
    const share = this.#share();
    if (!this.#queues.some((queue) => queue.fetchable && queue.bytes < share)) return;
    this.#assigning = true;
    this.#request(share)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#assigning = false;
        // A request that ended meanwhile has found the door shut.
        if (this.#again) this.fill();
      });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#pool.close();
  }

  #share(): number {
    const share = Math.floor(this.#settings.bufferBytes / Math.max(1, this.#queues.length) / 2);
    return Math.min(partitionBytesMax, Math.max(partitionBytesMin, share));
  }

  async #request(share: number): Promise<void> {
    const wanted = this.#queues.filter((queue) => queue.fetchable && queue.bytes < share);
    await this.#cluster.topics([...new Set(wanted.map(({ topic }) => topic))]);
    const byNode = new Map<number, PartitionQueue[]>();
    for (const queue of wanted) {
      const node = await this.#cluster.leaderOf(queue.topic, queue.partition);
      if (this.#busy.has(node)) continue;
      const of = byNode.get(node);
      if (of === undefined) byNode.set(node, [queue]);
      else of.push(queue);
    }
    for (const [node, queues] of byNode) {
      this.#busy.add(node);
      for (const queue of queues) queue.fetching = true;
      this.#fetch(node, queues, share)
        .catch((error: unknown) => this.#failed(error))
        .finally(() => {
          this.#busy.delete(node);
          for (const queue of queues) queue.fetching = false;
          this.fill();
        });
    }
  }

  async #fetch(node: number, queues: readonly PartitionQueue[], share: number): Promise<void> {
    const broker = this.#cluster.address(node);
    if (broker === undefined) throw new MillraceError('kafka-unavailable', `Kafka: broker ${node} is not known`);
    const connection = await this.#pool.get(broker);
    const topics = await this.#cluster.topics([]);
    const byTopic = Map.groupBy(queues, ({ topic }) => topics.get(topic)?.id as string);
    const asked = [...byTopic].map(([topicId, of]) => ({
      topicId,
      partitions: of.map(({ partition, fetchOffset }) => ({
        partition,
        fetchOffset: BigInt(fetchOffset),
        partitionMaxBytes: share,
        currentLeaderEpoch: -1,
        lastFetchedEpoch: -1,
      })),
    }));
    const { isolation, waitMaxMs } = this.#settings;
    const level = isolation === 'read-committed' ? 1 : 0;
    try {
      // No session (0, -1): the partitions of a subtask come and go with its queues.
      const answer = await fetchV13.api.async(connection, waitMaxMs, 1, answerBytesMax, level, 0, -1, asked, [], '');
      this.#patience = undefined;
      for (const { topicId, partitions } of answer.responses) {
        for (const partition of partitions) {
          const queue = byTopic.get(topicId)?.find((one) => one.partition === partition.partitionIndex);
          if (queue !== undefined) this.#take(queue, partition);
        }
      }
    } catch (error) {
      if (!hasAnswer(error, 'OFFSET_OUT_OF_RANGE')) throw error;
      await this.#recover(queues);
    }
  }

  #take(queue: PartitionQueue, answer: fetchV13.FetchResponsePartition): void {
    const where = { topic: queue.topic, partition: queue.partition, fromOffset: queue.fetchOffset };
    const { messages, nextOffset } = decodePartition(where, answer, this.#settings.isolation);
    if (nextOffset === queue.fetchOffset) return;
    let bytes = 0;
    for (const { key, value } of messages) bytes += 64 + (key?.length ?? 0) + (value?.length ?? 0);
    queue.push(messages, nextOffset, bytes);
    this.#changed();
  }

  /** Some of these ask for what is not in the log any more: which, and is that forgiven? */
  async #recover(queues: readonly PartitionQueue[]): Promise<void> {
    const { missing } = this.#settings;
    const [first, last] = await Promise.all([
      listOffsets(this.#cluster, queues, { spec: 'earliest', isolation: 'read-uncommitted' }),
      listOffsets(this.#cluster, queues, { spec: 'latest', isolation: 'read-uncommitted' }),
    ]);
    for (const [index, queue] of queues.entries()) {
      const [from, to] = [first[index] as number, last[index] as number];
      if (queue.fetchOffset >= from && queue.fetchOffset <= to) continue;
      if (missing === 'fail' || queue.fetchOffset > to) {
        throw new MillraceError(
          'source-position',
          `${queue.name} holds offsets ${from} to ${to}, and ${queue.fetchOffset} is to be read next`,
          { details: { topic: queue.topic, partition: queue.partition, offset: queue.fetchOffset, from, to } },
        );
      }
      queue.push([], from, 0);
    }
    this.#changed();
  }

  #failed(error: unknown): void {
    if (this.#closed) return;
    this.#patience ??= new Deadline(this.#cluster.clock, this.#cluster.settings.timeoutMs);
    if (!isTransient(error) || this.#patience.leftMs === 0) {
      this.#changed(kafkaError(error, 'reading'));
      return;
    }
    this.#cluster.forget();
    this.#cluster.clock.schedule(pauseMs, () => this.fill());
  }
}
