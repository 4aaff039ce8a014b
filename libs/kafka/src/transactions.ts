/** Who writes: what the broker knows a transaction, or a writer without one, by. Plain JSON: it is kept in checkpoints. */
export interface ProducerIdentity {
  /** Transactional id; null: writes outside transactions. */
  readonly id: string | null;
  /** 64 bits, hence decimal text. */
  readonly producerId: string;
  readonly epoch: number;
}

/** A record on its way to Kafka, its partition chosen. */
export interface OutgoingMessage {
  readonly topic: string;
  readonly partition: number;
  readonly key: Buffer | undefined;
  readonly value: Buffer | null;
  readonly headers: Map<Buffer, Buffer> | undefined;
  readonly timestampMs: number;
}

/** Consecutive records of one partition by one writer, numbered from `firstSequence`: a repeated batch is stored once. */
export interface OutgoingBatch {
  readonly topic: string;
  readonly partition: number;
  readonly firstSequence: number;
  readonly messages: readonly OutgoingMessage[];
}

/** What the sink needs of a cluster. Every call repeats itself within its time limit, and is safe to repeat. */
export interface Transactions {
  partitions(topic: string): Promise<number>;
  /** A new identity under this name. What was open under it is aborted, and who wrote it is fenced. */
  begin(id: string | null): Promise<ProducerIdentity>;
  /** Before the first batch of these partitions. */
  enlist(
    writer: ProducerIdentity,
    partitions: ReadonlyArray<{ readonly topic: string; readonly partition: number }>,
  ): Promise<void>;
  append(writer: ProducerIdentity, batches: readonly OutgoingBatch[]): Promise<void>;
  /**
   * `lost`: the broker has aborted it, or another has begun under its name since. An already committed one is `done` as long
   * as nobody begins under its name.
   */
  commit(writer: ProducerIdentity): Promise<'done' | 'lost'>;
  /** No error when it is over already. */
  abort(writer: ProducerIdentity): Promise<void>;
  /** Names with an open transaction that begin with `prefix`. */
  open(prefix: string): Promise<readonly string[]>;
  close(): Promise<void>;
}
