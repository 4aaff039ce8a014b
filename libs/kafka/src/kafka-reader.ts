import { MillraceError, type Timer } from '@millrace/kernel';
import type { EmitRecord, Poll, SourceReader, Split, SplitPosition } from '@millrace/streams';
import { offsetCommitV8 } from '@platformatic/kafka';
import type { Cluster } from './cluster.ts';
import { Fetcher, type FetchSettings } from './fetcher.ts';
import type { KafkaMessage } from './message.ts';
import { type KafkaSplitData, PartitionQueue } from './partition-queue.ts';

export interface KafkaReaderOptions<T> {
  readonly fetch: FetchSettings;
  readonly decode: (message: KafkaMessage) => T | undefined;
  readonly group: string | undefined;
  /** Looks for partitions that this subtask has to read from now on; absent: there is an end. */
  readonly discover: Discovery | undefined;
}

interface Discovery {
  readonly everyMs: number;
  /** Those that were not there before. */
  readonly find: () => Promise<readonly Split[]>;
}

/** Longest time that offsets of a checkpoint are tried to be committed to the group, before the next may replace them. */
const groupCommitMs = 10_000;

const lastCommitMs = 3000;

/** Reads the partitions of one subtask, in turns. */
export class KafkaReader<T> implements SourceReader<T> {
  readonly #cluster: Cluster;
  readonly #options: KafkaReaderOptions<T>;
  readonly #fetcher: Fetcher;
  readonly #queues: PartitionQueue[] = [];
  #turn = 0;
  #paused: ReadonlySet<string> = new Set();
  #failure: unknown;
  #waiting: PromiseWithResolvers<void> | undefined;
  #nextDiscovery: Timer | undefined;
  #committing: Promise<void> | undefined;

  constructor(cluster: Cluster, positions: readonly SplitPosition[], options: KafkaReaderOptions<T>) {
    this.#cluster = cluster;
    this.#options = options;
    this.#fetcher = new Fetcher(cluster, options.fetch, (failure) => this.#wake(failure));
    for (const { split, position } of positions) this.#add(new PartitionQueue(split, position));
    if (options.discover !== undefined) this.#discoverLater(options.discover);
  }

  read(recordsMax: number, emit: EmitRecord<T>): Poll {
    if (this.#failure !== undefined) throw this.#failure;
    let left = recordsMax;
    const paused = this.#paused;
    for (let tries = this.#queues.length; tries > 0 && left > 0; tries--) {
      const queue = this.#queues[this.#turn % this.#queues.length] as PartitionQueue;
      const waits = paused.has(queue.split.id);
      if (!waits) left -= queue.take(left, (message) => this.#emit(message, queue.split, emit));
      if (waits || queue.empty) this.#turn++;
    }
    if (this.#options.discover === undefined && this.#queues.every(({ done }) => done)) return 'end';
    this.#fetcher.fill();
    if (this.#queues.some(({ empty, split }) => !empty && !paused.has(split.id))) return 'more';
    this.#waiting ??= Promise.withResolvers<void>();
    return this.#waiting.promise;
  }

  openSplits(): readonly Split[] {
    return this.#queues.filter(({ done }) => !done).map(({ split }) => split);
  }

  pause(ids: ReadonlySet<string>): void {
    this.#paused = ids;
    this.#wake();
  }

  /** Those that are done, too: their last offsets go to the group, and they are known to whoever looks for new ones. */
  positions(): readonly SplitPosition[] {
    return this.#queues.map(({ split, position }) => ({ split, position }));
  }

  /**
   * The checkpoint with these positions is registered: they are committed to the group, for those who watch its lag. Nobody
   * waits for it and its failure is no failure of the job, whose positions are in the checkpoint; the next one makes up for it.
   */
  commit(positions: readonly SplitPosition[]): void {
    const { group } = this.#options;
    if (group === undefined || positions.length === 0 || this.#committing !== undefined) return;
    this.#committing = this.#commit(group, positions)
      .catch(() => undefined)
      .finally(() => {
        this.#committing = undefined;
      });
  }

  async close(): Promise<void> {
    this.#nextDiscovery?.cancel();
    await this.#fetcher.close();
    // The offsets of the last checkpoint are on their way; a little patience, no more.
    const late = Promise.withResolvers<void>();
    const timer = this.#cluster.clock.schedule(lastCommitMs, late.resolve);
    await Promise.race([this.#committing, late.promise]);
    timer.cancel();
    await this.#cluster.close();
  }

  #add(queue: PartitionQueue): void {
    this.#queues.push(queue);
    this.#fetcher.add(queue);
  }

  #emit(message: KafkaMessage, split: Split, emit: EmitRecord<T>): void {
    let record: T | undefined;
    try {
      record = this.#options.decode(message);
    } catch (cause) {
      const { topic, partition, offset } = message;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new MillraceError(
        'source-input',
        `${topic}/${partition}: the record at ${offset} cannot be taken: ${why}`,
        {
          details: { topic, partition, offset },
          cause,
        },
      );
    }
    if (record !== undefined) emit(record, split);
  }

  #wake(failure?: unknown): void {
    if (failure !== undefined) this.#failure ??= failure;
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  #discoverLater(discover: Discovery): void {
    this.#nextDiscovery = this.#cluster.clock.schedule(discover.everyMs, () => {
      discover
        .find()
        .then((splits) => {
          for (const split of splits) this.#add(new PartitionQueue(split, 0));
          if (splits.length > 0) this.#wake();
          if (!this.#cluster.closed) this.#discoverLater(discover);
        })
        .catch((error: unknown) => {
          if (!this.#cluster.closed) this.#wake(error);
        });
    });
  }

  async #commit(group: string, positions: readonly SplitPosition[]): Promise<void> {
    const at = positions.map(({ split, position }) => {
      const { topic, partition, startOffset } = split.data as KafkaSplitData;
      return { topic, partition, offset: Math.max(position, startOffset) };
    });
    const topics = [...Map.groupBy(at, ({ topic }) => topic)].map(([name, of]) => ({
      name,
      partitions: of.map(({ partition, offset }) => ({
        partitionIndex: partition,
        committedOffset: BigInt(offset),
        committedLeaderEpoch: -1,
      })),
    }));
    await this.#cluster.persist(
      `committing offsets of group ${group}`,
      async () => {
        const connection = await this.#cluster.coordinator('group', group);
        // As a member of no generation: the group has no members, only offsets.
        await offsetCommitV8.api.async(connection, group, -1, '', null, topics);
      },
      groupCommitMs,
    );
  }
}
