import { MillraceError } from '@millrace/kernel';

interface Cooling {
  readonly index: number;
  /** The newest round whose snapshot may name the transaction. */
  readonly namedIn: number;
}

/**
 * The numbers in the names of a subtask's transactions. A name is used again only when a round is registered that cannot
 * name its last transaction any more: until then a restore may have to commit it once more, and the broker answers that
 * truthfully only while nobody has begun under the name since.
 */
export class TransactionPool {
  readonly #max: number;
  #made = 0;
  readonly #free: number[] = [];
  #cooling: Cooling[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  take(): number {
    const index = this.#free.pop();
    if (index !== undefined) return index;
    if (this.#made < this.#max) return this.#made++;
    throw new MillraceError(
      'kafka-unavailable',
      `${this.#max} transactions of a Kafka sink are open: as many rounds in a row were not registered`,
    );
  }

  /** Committed; snapshots up to round `namedIn` may still name it. */
  release(index: number, namedIn: number): void {
    this.#cooling.push({ index, namedIn });
  }

  registered(checkpoint: number): void {
    for (const { index, namedIn } of this.#cooling) if (namedIn < checkpoint) this.#free.push(index);
    this.#cooling = this.#cooling.filter(({ namedIn }) => namedIn >= checkpoint);
  }
}
