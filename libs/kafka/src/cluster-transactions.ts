import { MillraceError } from '@millrace/kernel';
import {
  addPartitionsToTxnV3,
  type CompressionAlgorithmValue,
  endTxnV3,
  initProducerIdV4,
  listTransactionsV0,
  NumericMap,
  produceV9,
  type ResponseError,
} from '@platformatic/kafka';
import type { Cluster } from './cluster.ts';
import { isLostTransaction, isTransient } from './failures.ts';
import type { OutgoingBatch, OutgoingMessage, ProducerIdentity, Transactions } from './transactions.ts';

export interface TransactionSettings {
  /** The broker aborts a transaction that is open for longer. */
  readonly transactionTimeoutMs: number;
  readonly compression: CompressionAlgorithmValue;
}

const acksOfAll = -1;
/** Stored before: the answer to it was lost. */
const duplicateSequence = 46;

/**
 * Transactions by Kafka's protocol, without KIP-890's second version: there the broker renews the epoch at each end, and
 * with it the identity under which a transaction can be committed after a restart. An abort is a `begin` under the same name.
 */
export class ClusterTransactions implements Transactions {
  readonly #cluster: Cluster;
  readonly #settings: TransactionSettings;

  constructor(cluster: Cluster, settings: TransactionSettings) {
    this.#cluster = cluster;
    this.#settings = settings;
  }

  async partitions(topic: string): Promise<number> {
    const found = await this.#cluster.persist(`reading topic ${topic}`, () => this.#cluster.topics([topic]));
    const count = found.get(topic)?.leaders.length ?? 0;
    if (count > 0) return count;
    throw new MillraceError('kafka-refused', `Kafka: topic ${topic} has no partitions`);
  }

  begin(id: string | null): Promise<ProducerIdentity> {
    return this.#cluster.persist(`beginning ${id ?? 'to write'}`, async () => {
      const connection = id === null ? await this.#anyNode() : await this.#cluster.coordinator('transaction', id);
      const timeoutMs = id === null ? -1 : this.#settings.transactionTimeoutMs;
      const { producerId, producerEpoch } = await initProducerIdV4.api.async(connection, id, timeoutMs);
      return { id, producerId: String(producerId), epoch: producerEpoch };
    });
  }

  async enlist(
    writer: ProducerIdentity,
    partitions: ReadonlyArray<{ readonly topic: string; readonly partition: number }>,
  ): Promise<void> {
    const { id, producerId, epoch } = writer;
    if (id === null) return;
    const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, of]) => ({
      name,
      partitions: of.map(({ partition }) => partition),
    }));
    const request = {
      transactionalId: id,
      producerId: BigInt(producerId),
      producerEpoch: epoch,
      verifyOnly: false,
      topics,
    };
    await this.#ofWriter(writer, `enlisting in ${id}`, async () => {
      await addPartitionsToTxnV3.api.async(await this.#cluster.coordinator('transaction', id), [request]);
    });
  }

  async append(writer: ProducerIdentity, batches: readonly OutgoingBatch[]): Promise<void> {
    let left = batches;
    await this.#ofWriter(writer, 'writing', async () => {
      const byLeader = new Map<number, OutgoingBatch[]>();
      for (const batch of left) {
        const leader = await this.#cluster.leaderOf(batch.topic, batch.partition);
        const of = byLeader.get(leader);
        if (of === undefined) byLeader.set(leader, [batch]);
        else of.push(batch);
      }
      const answers = await Promise.all([...byLeader].map(([leader, of]) => this.#produce(writer, leader, of)));
      left = answers.flatMap(({ failed }) => failed);
      const errors = answers.flatMap(({ error }) => (error === undefined ? [] : [error]));
      const worst = errors.find((error) => !isTransient(error)) ?? errors[0];
      if (worst !== undefined) throw worst;
    });
  }

  async commit(writer: ProducerIdentity): Promise<'done' | 'lost'> {
    try {
      await this.#cluster.persist(`committing ${writer.id}`, () => this.#end(writer, true));
      return 'done';
    } catch (error) {
      if (isLostTransaction((error as MillraceError).cause)) return 'lost';
      throw error;
    }
  }

  async abort(writer: ProducerIdentity): Promise<void> {
    try {
      await this.#cluster.persist(`aborting ${writer.id}`, () => this.#end(writer, false));
    } catch (error) {
      if (!isLostTransaction((error as MillraceError).cause)) throw error;
    }
  }

  async open(prefix: string): Promise<readonly string[]> {
    return this.#cluster.persist('listing transactions', async () => {
      // Each broker knows those that it coordinates.
      const answers = await Promise.all(
        (await this.#cluster.nodes()).map(async (node) =>
          listTransactionsV0.api.async(await this.#cluster.node(node), ['ONGOING'], [], -1n, null),
        ),
      );
      const names = answers.flatMap(({ transactionStates }) => transactionStates.map((one) => one.transactionalId));
      return names.filter((name) => name.startsWith(prefix));
    });
  }

  close(): Promise<void> {
    return this.#cluster.close();
  }

  async #anyNode(): ReturnType<Cluster['node']> {
    const [node] = await this.#cluster.nodes();
    return this.#cluster.node(node as number);
  }

  async #end({ id, producerId, epoch }: ProducerIdentity, committed: boolean): Promise<void> {
    const connection = await this.#cluster.coordinator('transaction', id as string);
    await endTxnV3.api.async(connection, id as string, BigInt(producerId), epoch, committed);
  }

  /** A writer whose identity is gone cannot go on, but all that it wrote is in no registered checkpoint: it is written again. */
  async #ofWriter(writer: ProducerIdentity, doing: string, work: () => Promise<void>): Promise<void> {
    try {
      await this.#cluster.persist(doing, work);
    } catch (error) {
      if (!isLostTransaction((error as MillraceError).cause)) throw error;
      throw new MillraceError(
        'kafka-unavailable',
        `Kafka: ${doing}: the broker has ended ${writer.id ?? 'the writer'}. Is transactionTimeoutMs (${this.#settings.transactionTimeoutMs}) longer than the time between two checkpoints?`,
        { cause: error },
      );
    }
  }

  /** The batches that were not stored, and why. */
  async #produce(
    writer: ProducerIdentity,
    leader: number,
    batches: readonly OutgoingBatch[],
  ): Promise<{ readonly failed: readonly OutgoingBatch[]; readonly error?: unknown }> {
    const sequences = new NumericMap();
    for (const { topic, partition, firstSequence } of batches) sequences.set(`${topic}:${partition}`, firstSequence);
    const messages = batches.flatMap((batch) => batch.messages.map(recordOf));
    const { id, producerId, epoch } = writer;
    const { compression } = this.#settings;
    const options = {
      compression,
      producerId: BigInt(producerId),
      producerEpoch: epoch,
      sequences,
      ...(id === null ? {} : { transactionalId: id }),
    };
    const timeoutMs = Math.ceil(this.#cluster.settings.requestTimeoutMs / 2);
    try {
      await produceV9.api.async(await this.#cluster.node(leader), acksOfAll, timeoutMs, messages, options);
      return { failed: [] };
    } catch (error) {
      const failed = notStored(error, batches);
      return failed.length === 0 ? { failed } : { failed, error };
    }
  }
}

/** Those whose partition did not answer well; all, when there is no answer. */
function notStored(error: unknown, batches: readonly OutgoingBatch[]): readonly OutgoingBatch[] {
  const { response } = error as ResponseError & { readonly response?: produceV9.ProduceResponse };
  if (response === undefined) return batches;
  return batches.filter(({ topic, partition }) => {
    const answers = response.responses.find(({ name }) => name === topic)?.partitionResponses;
    const code = answers?.find(({ index }) => index === partition)?.errorCode ?? -1;
    return code !== 0 && code !== duplicateSequence;
  });
}

function recordOf(message: OutgoingMessage): Parameters<typeof produceV9.createRequest>[2][number] {
  const { topic, partition, key, value, headers, timestampMs } = message;
  return {
    topic,
    partition,
    // A tombstone is a null value, which the client writes and does not declare.
    value: value as Buffer,
    timestamp: BigInt(timestampMs),
    ...(key === undefined ? {} : { key }),
    ...(headers === undefined ? {} : { headers }),
  };
}
