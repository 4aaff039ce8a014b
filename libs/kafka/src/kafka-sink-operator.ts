import { type Clock, isKind, MillraceError, type Timer } from '@millrace/kernel';
import { BaseOperator, type OperatorContext, type OperatorPart } from '@millrace/streams';
import { type KafkaRecord, outgoing } from './kafka-record.ts';
import { RecordWriter } from './record-writer.ts';
import { generationOf, namePrefix, transactionName } from './transaction-names.ts';
import { TransactionPool } from './transaction-pool.ts';
import type { ProducerIdentity, Transactions } from './transactions.ts';

export interface KafkaSinkOperatorOptions<T> {
  readonly topic: string;
  readonly encode: (record: T, timestampMs: number) => KafkaRecord;
  readonly delivery: 'exactly-once' | 'at-least-once';
  readonly lost: 'fail' | 'ignore';
  readonly namePrefix: string;
  readonly batchBytes: number;
  readonly lingerMs: number;
  readonly connect: (clock: Clock) => Transactions;
}

/** A transaction that holds all records up to a barrier, stored and not yet visible. */
interface Prepared extends ProducerIdentity {
  readonly kind: 'transaction';
  readonly job: string;
  readonly checkpoint: number;
}

interface Pending {
  readonly prepared: Prepared;
  /** Of this attempt's pool; undefined: restored. */
  readonly index: number | undefined;
}

const openMax = 32;
const commitTriesMax = 3;

/**
 * Kafka's transactions as two-phase commit. Crash order:
 * 1. records go to an open transaction; a crash leaves it open, in no registered checkpoint: the next attempt aborts it;
 * 2. at the barrier everything is stored with all in-sync replicas, and only then the transaction's identity (name, producer,
 *    epoch) goes into the checkpoint; what comes next goes to another transaction;
 * 3. when the checkpoint is registered, it is committed under that identity: by this process, or after a crash by the one
 *    that restores the checkpoint. The broker takes a repeated commit as done.
 * A name is not begun under again before no restore can ask for its last transaction (TransactionPool), so the answer
 * "fenced" at a commit means that the broker has given the transaction up: never a silent loss. The generation is in the
 * names: attempts share none, and a fenced attempt that goes on can commit only what the newest registered checkpoint
 * names too.
 */
export class KafkaSinkOperator<T> extends BaseOperator {
  readonly #options: KafkaSinkOperatorOptions<T>;
  readonly #pool = new TransactionPool(openMax);
  readonly #partitions = new Map<string, number>();
  #transactions: Transactions | undefined;
  #prefix = '';
  #writer: RecordWriter | undefined;
  #index = 0;
  #turn = 0;
  #linger: Timer | undefined;
  #pending: readonly Pending[] = [];
  #newestSnapshot = 0;
  /** Flushes of snapshots, one after the other: a checkpoint also names what earlier, unregistered rounds prepared. */
  #prepared: Promise<void> = Promise.resolve();
  #commits: Promise<void> = Promise.resolve();
  #failedCommits = 0;

  constructor(options: KafkaSinkOperatorOptions<T>) {
    super();
    this.#options = options;
  }

  override async open(context: OperatorContext): Promise<void> {
    await super.open(context);
    const { slot, uid, subtask } = context;
    const { topic, connect, delivery } = this.#options;
    this.#transactions = connect(slot.clock);
    this.#partitions.set(topic, await this.#transactions.partitions(topic));
    if (delivery === 'at-least-once') return;
    this.#prefix = namePrefix(this.#options.namePrefix, { job: slot.job, uid, lineage: slot.lineage ?? '' });
    if (subtask === 0) await this.#sweep();
    for (const prepared of (context.restoredList ?? []) as readonly Prepared[]) await this.#commit(prepared);
  }

  override record(value: unknown, timestampMs: number): void | Promise<void> {
    const record = this.#options.encode(value as T, timestampMs);
    const topic = record.topic ?? this.#options.topic;
    const partitions = this.#partitions.get(topic);
    if (partitions === undefined) return this.#afterLookup(topic, record, timestampMs);
    return this.#write(record, { topic, partitions, timestampMs });
  }

  override async snapshot(checkpoint: number): Promise<OperatorPart> {
    this.#newestSnapshot = checkpoint;
    // Up to the first await, so that what comes next goes to the next transaction.
    const [writer, index] = [this.#writer, this.#index];
    const exactly = this.#options.delivery === 'exactly-once';
    if (exactly) this.#writer = undefined;
    if (writer !== undefined) this.#prepared = this.#prepared.then(() => this.#prepare(writer, index, checkpoint));
    try {
      await this.#prepared;
    } catch (error) {
      // The records are nowhere else: a later round cannot make up for it.
      this.context.fail(error);
      throw error;
    }
    const named = this.#pending.filter(({ prepared }) => prepared.checkpoint <= checkpoint);
    return exactly ? { list: named.map(({ prepared }) => prepared) } : {};
  }

  override async complete(checkpoint: number): Promise<void> {
    const commit = this.#commits.then(() => this.#commitAll(checkpoint));
    this.#commits = commit.catch(() => undefined); // a repeated call, or the next round's, tries again
    await commit;
  }

  override async close(): Promise<void> {
    this.#linger?.cancel();
    const identity = this.#writer?.identity;
    // No checkpoint names it: readers need not wait for its time to be over. Best effort; the next attempt sees to it as well.
    if (identity !== undefined && identity.id !== null) {
      await this.#transactions?.abort(identity).catch(() => undefined);
    }
    await this.#transactions?.close();
  }

  async #afterLookup(topic: string, record: KafkaRecord, timestampMs: number): Promise<void> {
    const partitions = await this.#open.partitions(topic);
    this.#partitions.set(topic, partitions);
    await this.#write(record, { topic, partitions, timestampMs });
  }

  #write(
    record: KafkaRecord,
    to: { readonly topic: string; readonly partitions: number; readonly timestampMs: number },
  ): void | Promise<void> {
    const { clock } = this.context.slot;
    // Time 0 stands for none; Kafka's retention would delete such a record at once.
    const timestampMs = to.timestampMs > 0 ? to.timestampMs : clock.nowMs();
    this.#writer ??= this.#begin();
    const added = this.#writer.add(outgoing(record, { ...to, timestampMs, turn: this.#turn++ }));
    if (this.#options.delivery === 'at-least-once')
      this.#linger ??= clock.schedule(this.#options.lingerMs, this.#flush);
    return added;
  }

  #begin(): RecordWriter {
    const { delivery, batchBytes } = this.#options;
    if (delivery === 'at-least-once') return new RecordWriter(this.#open, null, batchBytes);
    this.#index = this.#pool.take();
    const { slot, subtask } = this.context;
    const name = transactionName(this.#prefix, { generation: slot.generation, subtask, index: this.#index });
    return new RecordWriter(this.#open, name, batchBytes);
  }

  /** Nobody waits for a commit here: records become visible after a moment, not only when a batch is full. */
  readonly #flush = (): void => {
    this.#linger = undefined;
    this.#writer?.flush().catch((error: unknown) => this.context.fail(error));
  };

  async #prepare(writer: RecordWriter, index: number, checkpoint: number): Promise<void> {
    await writer.flush();
    const { identity } = writer;
    if (identity === undefined || identity.id === null) return;
    const prepared: Prepared = { kind: 'transaction', job: this.context.slot.job, checkpoint, ...identity };
    this.#pending = [...this.#pending, { prepared, index }];
  }

  async #commitAll(checkpoint: number): Promise<void> {
    const due = this.#pending.filter(({ prepared }) => prepared.checkpoint <= checkpoint);
    try {
      for (const one of due) {
        await this.#commit(one.prepared);
        this.#pending = this.#pending.filter((other) => other !== one);
        if (one.index !== undefined) this.#pool.release(one.index, this.#newestSnapshot);
      }
      this.#pool.registered(checkpoint);
      this.#failedCommits = 0;
    } catch (error) {
      this.#failedCommits += 1;
      if (this.#failedCommits >= commitTriesMax || !isKind(error, 'retry')) this.context.fail(error);
      throw error;
    }
  }

  async #commit(prepared: Prepared): Promise<void> {
    // A fork of the job's state: the output of the other job is the other job's.
    if (prepared.job !== this.context.slot.job) return;
    if ((await this.#open.commit(prepared)) === 'done') return;
    const words = `the transaction ${prepared.id} of checkpoint ${prepared.checkpoint} is gone: the brokers aborted it, and its records with it`;
    const details = { transaction: prepared.id, checkpoint: prepared.checkpoint };
    if (this.#options.lost === 'fail')
      throw new MillraceError('sink-output-missing', `${this.context.uid}: ${words}`, { details });
    this.context.slot.telemetry.log.error(`Kafka sink: ${words}`, { ...details, operator: this.context.uid });
  }

  /** Aborts what dead attempts left open and the restored checkpoint does not name: readers of committed records wait for it. */
  async #sweep(): Promise<void> {
    const { slot, uid } = this.context;
    const parts = slot.restore?.filter((part) => part.operator === uid) ?? [];
    const named = new Set(parts.flatMap((part) => (part.list ?? []) as readonly Prepared[]).map(({ id }) => id));
    for (const name of await this.#open.open(this.#prefix)) {
      const generation = generationOf(this.#prefix, name);
      if (generation === undefined || generation >= slot.generation || named.has(name)) continue;
      await this.#open.begin(name);
    }
  }

  get #open(): Transactions {
    const transactions = this.#transactions;
    if (transactions === undefined) throw new MillraceError('unexpected', 'Kafka sink used before it was opened');
    return transactions;
  }
}
