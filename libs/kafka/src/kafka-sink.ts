import type { Clock } from '@millrace/kernel';
import type { Sink } from '@millrace/streams';
import type { CompressionAlgorithmValue } from '@platformatic/kafka';
import { Cluster } from './cluster.ts';
import { ClusterTransactions } from './cluster-transactions.ts';
import type { KafkaRecord } from './kafka-record.ts';
import { KafkaSinkOperator } from './kafka-sink-operator.ts';
import { clusterSettings, type KafkaConnection, positive } from './settings.ts';

export interface KafkaSinkOptions<T> extends KafkaConnection {
  readonly topic: string;
  readonly encode: (record: T, timestampMs: number) => KafkaRecord;
  /**
   * `exactly-once` (default): readers with `isolation.level=read_committed` see each record once, when the checkpoint that
   * holds it is registered. `at-least-once`: within `lingerMs`, and again after a failure.
   */
  readonly delivery?: 'exactly-once' | 'at-least-once' | undefined;
  /**
   * How long a transaction may be open, from its first record on. Longer than the time between two registered checkpoints
   * and the longest outage of the job together; at most the brokers' `transaction.max.timeout.ms`. Default 15 minutes.
   */
  readonly transactionTimeoutMs?: number | undefined;
  /**
   * When the brokers have aborted a transaction of a registered checkpoint, because the job was away for longer than
   * `transactionTimeoutMs`: `fail` (default) refuses to go on without its records, `ignore` logs it and goes on.
   */
  readonly lostTransactions?: 'fail' | 'ignore' | undefined;
  /** Transactional ids begin with it; the job, its operator, generation and subtask follow. Default `millrace/`. */
  readonly transactionalIdPrefix?: string | undefined;
  readonly compression?: CompressionAlgorithmValue | undefined;
  /** Bytes gathered before they are written; twice as much may wait. Default 256 KiB. */
  readonly batchBytes?: number | undefined;
  /** Longest time that a record waits for others, `at-least-once` only. Default 50 ms. */
  readonly lingerMs?: number | undefined;
}

/** A topic of a Kafka cluster, written in transactions that follow the checkpoints. Topics must exist. */
export function kafkaSink<T>(options: KafkaSinkOptions<T>): Sink<T> {
  const settings = clusterSettings(options);
  const { topic, encode, delivery = 'exactly-once', lostTransactions = 'fail', compression = 'none' } = options;
  const transactionTimeoutMs = positive('transactionTimeoutMs', options.transactionTimeoutMs ?? 900_000);
  const batchBytes = positive('batchBytes', options.batchBytes ?? 256 * 1024);
  const lingerMs = positive('lingerMs', options.lingerMs ?? 50);
  const connect = (clock: Clock): ClusterTransactions =>
    new ClusterTransactions(new Cluster(settings, clock), { transactionTimeoutMs, compression });
  return {
    kind: 'kafka',
    stateful: delivery === 'exactly-once',
    create: () =>
      new KafkaSinkOperator({
        topic,
        encode,
        delivery,
        lost: lostTransactions,
        namePrefix: options.transactionalIdPrefix ?? 'millrace/',
        batchBytes,
        lingerMs,
        connect,
      }),
  };
}
