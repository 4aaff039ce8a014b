import { Admin, ConnectionPool, Consumer, listTransactionsV0, Producer, stringSerializers } from '@platformatic/kafka';

/** Topics, written and read by a client that is not the one under test. */
export class Topics implements AsyncDisposable {
  readonly #brokers: string[];
  readonly #admin: Admin;

  constructor(address: string) {
    this.#brokers = [address];
    this.#admin = new Admin({ clientId: 'test', bootstrapBrokers: this.#brokers });
  }

  async create(topic: string, partitions: number): Promise<void> {
    await this.#admin.createTopics({ topics: [topic], partitions, replicas: 1 });
  }

  async produce(topic: string, messages: ReadonlyArray<{ key: string; value: string }>): Promise<void> {
    const producer = new Producer({
      clientId: 'test',
      bootstrapBrokers: this.#brokers,
      serializers: stringSerializers,
      idempotent: true,
    });
    for (let at = 0; at < messages.length; at += 5000) {
      await producer.send({ messages: messages.slice(at, at + 5000).map((one) => ({ ...one, topic })) });
    }
    await producer.close();
  }

  /** Every record that a reader of committed records sees, up to the end of the topic. */
  async committed(topic: string): Promise<string[]> {
    const consumer = new Consumer({ clientId: 'test', groupId: `test-${topic}`, bootstrapBrokers: this.#brokers });
    const ends = (await consumer.listOffsets({ topics: [topic], isolationLevel: 1 })).get(topic) ?? [];
    const values: string[] = [];
    const left = new Map(ends.flatMap((end, partition) => (end > 0n ? [[partition, end] as const] : [])));
    if (left.size > 0) {
      const stream = await consumer.consume({ topics: [topic], mode: 'earliest', isolationLevel: 1, maxWaitTime: 200 });
      const reached = (): boolean =>
        [...left].every(([partition, end]) => (stream.offsetsToFetch.get(`${topic}:${partition}`) ?? 0n) >= end);
      stream.on('data', (message) => values.push(message.value.toString()));
      while (!reached()) await new Promise((resolve) => setTimeout(resolve, 50));
      await new Promise((resolve) => setTimeout(resolve, 200));
      await stream.close();
    }
    await consumer.close(true);
    return values;
  }

  /** Ends of a topic's partitions, and where a group stands in them. */
  async offsets(topic: string, group: string): Promise<{ readonly end: bigint[]; readonly group: bigint[] }> {
    const consumer = new Consumer({ clientId: 'test', groupId: group, bootstrapBrokers: this.#brokers });
    const end = (await consumer.listOffsets({ topics: [topic] })).get(topic) ?? [];
    const partitions = end.map((_, partition) => partition);
    const committed = await consumer.listCommittedOffsets({ topics: [{ topic, partitions }] });
    await consumer.close(true);
    return { end, group: committed.get(topic) ?? [] };
  }

  /** Names of transactions that are open. */
  async openTransactions(): Promise<string[]> {
    const pool = new ConnectionPool('test');
    const [host, port] = (this.#brokers[0] as string).split(':');
    const connection = await pool.get({ host: host as string, port: Number(port) });
    const { transactionStates } = await listTransactionsV0.api.async(connection, ['Ongoing'], [], -1n, null);
    await pool.close();
    return transactionStates.map((one) => one.transactionalId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#admin.close();
  }
}
