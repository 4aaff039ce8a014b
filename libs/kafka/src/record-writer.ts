import type { MillraceError } from '@millrace/kernel';
import type { OutgoingBatch, OutgoingMessage, ProducerIdentity, Transactions } from './transactions.ts';

/** What a record costs beside its bytes. */
const recordBytes = 64;

/**
 * The records of one writer: of one transaction, or of all that is written outside of transactions. Gathers them by
 * partition and writes one round of batches at a time; nothing is begun before there is a record.
 */
export class RecordWriter {
  readonly #transactions: Transactions;
  readonly #id: string | null;
  readonly #batchBytes: number;
  readonly #sequences = new Map<string, number>();
  #gathered = new Map<string, OutgoingMessage[]>();
  #bytes = 0;
  #writing: Promise<void> | undefined;
  #identity: ProducerIdentity | undefined;
  #failure: MillraceError | undefined;

  constructor(transactions: Transactions, id: string | null, batchBytes: number) {
    this.#transactions = transactions;
    this.#id = id;
    this.#batchBytes = batchBytes;
  }

  /** Undefined until the first records are on their way. */
  get identity(): ProducerIdentity | undefined {
    return this.#identity;
  }

  /** Nothing gathered, nothing on its way. */
  get idle(): boolean {
    return this.#bytes === 0 && this.#writing === undefined;
  }

  /** A promise when enough is waiting already. */
  add(message: OutgoingMessage): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const name = `${message.topic}:${message.partition}`;
    const of = this.#gathered.get(name);
    if (of === undefined) this.#gathered.set(name, [message]);
    else of.push(message);
    this.#bytes += recordBytes + (message.key?.length ?? 0) + (message.value?.length ?? 0);
    if (this.#bytes < this.#batchBytes) return;
    if (this.#writing === undefined) this.#start();
    else if (this.#bytes >= 2 * this.#batchBytes) return this.#room();
  }

  /** Resolves when everything that was added before is stored. */
  async flush(): Promise<void> {
    while (!this.idle) {
      if (this.#writing === undefined) this.#start();
      await this.#writing;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #room(): Promise<void> {
    await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#writing === undefined && this.#bytes >= this.#batchBytes) this.#start();
  }

  #start(): void {
    const batches = this.#take();
    this.#writing = this.#write(batches)
      .catch((error: unknown) => {
        this.#failure = error as MillraceError;
        this.#take();
      })
      .finally(() => {
        this.#writing = undefined;
      });
  }

  #take(): readonly OutgoingBatch[] {
    const batches = [...this.#gathered].map(([name, messages]): OutgoingBatch => {
      const firstSequence = this.#sequences.get(name) ?? 0;
      // Sequences wrap at 2^31, as Kafka's do.
      this.#sequences.set(name, (firstSequence + messages.length) % 2 ** 31);
      const { topic, partition } = messages[0] as OutgoingMessage;
      return { topic, partition, firstSequence, messages };
    });
    this.#gathered = new Map();
    this.#bytes = 0;
    return batches;
  }

  async #write(batches: readonly OutgoingBatch[]): Promise<void> {
    this.#identity ??= await this.#transactions.begin(this.#id);
    // The first batch of a partition begins at 0.
    const fresh = batches.filter(({ firstSequence }) => firstSequence === 0);
    if (fresh.length > 0) await this.#transactions.enlist(this.#identity, fresh);
    await this.#transactions.append(this.#identity, batches);
  }
}
