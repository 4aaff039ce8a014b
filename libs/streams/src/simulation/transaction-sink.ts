import { assert } from '@millrace/kernel';
import type { Sink } from '../api/sink.ts';
import { BaseOperator } from '../operators/base-operator.ts';
import type { OperatorContext, OperatorPart } from '../runtime/operator.ts';
import type { Item } from './item.ts';

export interface Published {
  readonly item: Item;
  readonly timeMs: number;
}

interface Transaction {
  readonly mark: string;
  readonly checkpoint: number;
  readonly values: readonly Published[];
}

/** What an exactly-once sink has published. It outlives the attempts. */
export class Publications {
  readonly #transactions = new Map<string, Transaction>();

  /** Idempotent, as a commit has to be. */
  commit(transaction: Transaction): void {
    if (!this.#transactions.has(transaction.mark)) this.#transactions.set(transaction.mark, transaction);
  }

  /** In the order of the checkpoints. */
  get values(): readonly Published[] {
    const inOrder = [...this.#transactions.values()].toSorted((a, b) => a.checkpoint - b.checkpoint);
    return inOrder.flatMap(({ values }) => values);
  }
}

/** Publishes by two-phase commit. `safe`: refuses records behind the watermark. */
export function transactionSink(publications: Publications, safe: boolean): Sink<Item> {
  return { kind: 'transactions', stateful: true, create: () => new TransactionSink(publications, safe) };
}

class TransactionSink extends BaseOperator {
  readonly #publications: Publications;
  readonly #safe: boolean;
  #values: Published[] = [];
  #transactions: Transaction[] = [];
  #watermarkMs = Number.NEGATIVE_INFINITY;

  constructor(publications: Publications, safe: boolean) {
    super();
    this.#publications = publications;
    this.#safe = safe;
  }

  override open(context: OperatorContext): void {
    void super.open(context);
    // The checkpoint was registered: what it holds has to be published, if it is not.
    for (const one of (context.restoredList ?? []) as readonly Transaction[]) this.#publications.commit(one);
  }

  override record(value: unknown, timeMs: number): void {
    const item = value as Item;
    assert(
      !this.#safe || timeMs > this.#watermarkMs,
      `${item.id} of ${timeMs} is behind the watermark ${this.#watermarkMs}`,
    );
    this.#values.push({ item, timeMs });
  }

  override watermark(watermarkMs: number): void {
    assert(watermarkMs > this.#watermarkMs, `the watermark ${watermarkMs} comes after ${this.#watermarkMs}`);
    this.#watermarkMs = watermarkMs;
  }

  override snapshot(checkpoint: number): Promise<OperatorPart> {
    const { generation, subtask } = this.context.slot;
    const values = this.#values;
    this.#values = [];
    const mark = `${checkpoint}-${subtask}-g${generation}`;
    if (values.length > 0) this.#transactions.push({ mark, checkpoint, values });
    return Promise.resolve({ list: [...this.#transactions] });
  }

  override complete(checkpoint: number): void {
    for (const one of this.#transactions) if (one.checkpoint <= checkpoint) this.#publications.commit(one);
    this.#transactions = this.#transactions.filter((one) => one.checkpoint > checkpoint);
  }
}
