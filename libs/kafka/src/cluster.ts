import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import { type Connection, ConnectionPool, findCoordinatorV4, metadataV12 } from '@platformatic/kafka';
import { hasAnswer, isTransient, kafkaError } from './failures.ts';
import { type ClusterSettings, Deadline } from './settings.ts';

/** What is known of a topic. `leaders[p]` is the node that leads partition p; -1: nobody at the moment. */
export interface TopicInfo {
  readonly id: string;
  readonly leaders: readonly number[];
}

interface Known {
  readonly atMs: number;
  readonly topics: ReadonlyMap<string, TopicInfo>;
  readonly nodes: ReadonlyMap<number, { readonly host: string; readonly port: number }>;
}

/** Partition leaders move; what is older is asked for again. */
const metadataAgeMs = 60_000;
/** A new topic is known to every broker after a moment; one that is not known for longer does not exist. */
const unknownTopicMs = 5000;
const backoffFirstMs = 50;
const backoffMaxMs = 2000;

const coordinatorKinds = { group: 0, transaction: 1 } as const;
type CoordinatorKind = keyof typeof coordinatorKinds;

/**
 * Connections to the brokers of a cluster, and who does what there. Protocol calls of the client are made on its connections,
 * not through its consumer and producer: those keep the identity of a transaction to themselves, and here it has to
 * outlive the process that wrote it.
 */
export class Cluster {
  readonly settings: ClusterSettings;
  readonly clock: Clock;
  readonly #pool: ConnectionPool;
  #known: Known = { atMs: Number.NEGATIVE_INFINITY, topics: new Map(), nodes: new Map() };
  readonly #coordinators = new Map<string, { host: string; port: number }>();
  readonly #closing = new AbortController();

  constructor(settings: ClusterSettings, clock: Clock) {
    this.settings = settings;
    this.clock = clock;
    this.#pool = new ConnectionPool(settings.clientId, settings.connection);
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Partition counts and leaders; rejects with `kafka-refused` when a topic does not exist. */
  async topics(names: readonly string[], freshness: 'cached' | 'fresh' = 'cached'): Promise<Known['topics']> {
    const old = this.clock.monotonicMs() - this.#known.atMs > metadataAgeMs;
    const missing = names.filter((name) => old || freshness === 'fresh' || !this.#known.topics.has(name));
    if (missing.length > 0) this.#learn(await this.#metadata(missing));
    return this.#known.topics;
  }

  /** The connection to the leader of a partition, or `kafka-unavailable` when it has none. */
  async leader(topic: string, partition: number): Promise<Connection> {
    return this.node(await this.leaderOf(topic, partition));
  }

  async leaderOf(topic: string, partition: number): Promise<number> {
    const leader = (await this.topics([topic])).get(topic)?.leaders[partition] ?? -1;
    if (leader >= 0) return leader;
    throw new MillraceError('kafka-unavailable', `Kafka: partition ${partition} of ${topic} has no leader`);
  }

  async node(id: number): Promise<Connection> {
    const broker = this.#known.nodes.get(id);
    if (broker === undefined) throw new MillraceError('kafka-unavailable', `Kafka: broker ${id} is not known`);
    return this.#pool.get(broker);
  }

  /** A connection of its own, for requests that the broker answers late. Whoever asks for it closes it. */
  pool(): ConnectionPool {
    return new ConnectionPool(this.settings.clientId, this.settings.connection);
  }

  address(id: number): { readonly host: string; readonly port: number } | undefined {
    return this.#known.nodes.get(id);
  }

  /** Every broker that is known, one of them asked before. */
  async nodes(): Promise<readonly number[]> {
    if (this.#known.nodes.size === 0) this.#learn(await this.#metadata([]));
    return [...this.#known.nodes.keys()];
  }

  async coordinator(kind: CoordinatorKind, key: string): Promise<Connection> {
    const name = `${kind}/${key}`;
    let broker = this.#coordinators.get(name);
    if (broker === undefined) {
      const answer = await findCoordinatorV4.api.async(await this.#any(), coordinatorKinds[kind], [key]);
      const found = answer.coordinators[0];
      if (found === undefined) throw new MillraceError('kafka-unavailable', `Kafka: no coordinator of ${key}`);
      broker = { host: found.host, port: found.port };
      this.#coordinators.set(name, broker);
    }
    return this.#pool.get(broker);
  }

  /** What was known of leaders and coordinators may be wrong. */
  forget(): void {
    this.#known = { ...this.#known, atMs: Number.NEGATIVE_INFINITY };
    this.#coordinators.clear();
  }

  /**
   * Tries until it succeeds, fails for good, or the time is over. `doing` names the operation in the error. The work must be
   * safe to repeat after a request whose answer was lost.
   */
  async persist<T>(doing: string, work: () => Promise<T>, timeoutMs = this.settings.timeoutMs): Promise<T> {
    const deadline = new Deadline(this.clock, timeoutMs);
    for (let pauseMs = backoffFirstMs; ; pauseMs = Math.min(2 * pauseMs, backoffMaxMs)) {
      try {
        return await work();
      } catch (error) {
        if (this.closed) throw new MillraceError('cancelled', `Kafka: ${doing}: closed`, { cause: error });
        if (!isTransient(error) || deadline.leftMs < pauseMs) throw kafkaError(error, doing);
        if (hasAnswer(error, 'UNKNOWN_TOPIC_OR_PARTITION') && timeoutMs - deadline.leftMs > unknownTopicMs) {
          throw new MillraceError('kafka-refused', `Kafka: ${doing}: there is no such topic`, { cause: error });
        }
        this.forget();
        await this.pause(pauseMs);
      }
    }
  }

  /** Ends early, with an error, when the cluster is closed. */
  async pause(delayMs: number): Promise<void> {
    try {
      await sleep(this.clock, delayMs, this.#closing.signal);
    } catch (error) {
      throw new MillraceError('cancelled', 'Kafka: closed', { cause: error });
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pool.close();
  }

  #any(): Promise<Connection> {
    const known = [...this.#known.nodes.values()];
    return this.#pool.getFirstAvailable(
      known.length > 0 ? [...known, ...this.settings.brokers] : [...this.settings.brokers],
    );
  }

  async #metadata(topics: readonly string[]): Promise<metadataV12.MetadataResponse> {
    return metadataV12.api.async(await this.#any(), [...topics], false, false);
  }

  #learn(answer: metadataV12.MetadataResponse): void {
    const topics = new Map(this.#known.topics);
    for (const { name, topicId, partitions } of answer.topics) {
      if (name === null || name === undefined) continue;
      const leaders = Array.from<number>({ length: partitions.length }).fill(-1);
      for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = leaderId;
      topics.set(name, { id: topicId, leaders });
    }
    const nodes = new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]));
    this.#known = { atMs: this.clock.monotonicMs(), topics, nodes };
  }
}
