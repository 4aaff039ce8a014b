/** Small operators for tests of the runtime itself: a split source, a keyed sum, an exactly-once sink. */
import { assert, ByteWriter, containsKeyGroup, keyGroupOf, type Random } from '@millrace/kernel';
import type { Codec, SnapshotHandle } from '@millrace/state';
import type { Operator, OperatorContext, OperatorPart, Poll, SourceOperator } from '../runtime/operator.ts';

export const jsonCodec: Codec<never> = {
  format: 'test-json',
  encode: (value: unknown, writer: ByteWriter) => writer.utf8(JSON.stringify(value)),
  decode: (reader) => JSON.parse(reader.utf8(reader.remaining)) as never,
};

export interface Split {
  readonly name: string;
  next: number;
  readonly end: number;
}

export interface Event {
  readonly split: string;
  readonly n: number;
  readonly key: number;
}

export interface SumResult {
  readonly key: number;
  readonly count: number;
  readonly sum: number;
}

/** Passes everything on; subclasses change what they care for. */
export class PassOperator implements Operator {
  protected context!: OperatorContext;

  open(context: OperatorContext): void | Promise<void> {
    this.context = context;
  }
  record(value: unknown, timestampMs: number, _input: number): void | Promise<void> {
    this.context.output.emit(value, timestampMs);
  }
  watermark(watermarkMs: number): void | Promise<void> {
    this.context.output.watermark(watermarkMs);
  }
  status(idle: boolean): void | Promise<void> {
    this.context.output.status(idle);
  }
  drain(): void | Promise<void> {
    return undefined;
  }
  async snapshot(_checkpoint: number): Promise<OperatorPart> {
    return {};
  }
  complete(_checkpoint: number): void | Promise<void> {
    return undefined;
  }
  abort(_checkpoint: number): void {
    return undefined;
  }
  inFlight(): number {
    return 0;
  }
  buffered(): number {
    return 0;
  }
  async close(): Promise<void> {
    return undefined;
  }
}

/** Emits `n` from `next` to `end` of its splits in turn; the splits are dealt anew at a restore. */
export class SplitSource extends PassOperator implements SourceOperator {
  #splits: Split[] = [];
  #turn = 0;
  readonly #all: readonly Split[];
  readonly #keys: number;
  readonly #random: Random | undefined;

  constructor(all: readonly Split[], keys: number, random?: Random) {
    super();
    this.#all = all;
    this.#keys = keys;
    this.#random = random;
  }

  override open(context: OperatorContext): void {
    this.context = context;
    const { subtask, parallelism } = context.slot;
    const own = context.restoredList ?? this.#all.filter((_, i) => i % parallelism === subtask);
    this.#splits = own.map((split) => ({ ...(split as Split) }));
  }

  poll(recordsMax: number): Poll {
    const open = this.#splits.filter((split) => split.next < split.end);
    if (open.length === 0) return 'end';
    const pause = this.#random?.below(8);
    if (pause === 0) return new Promise((resolve) => setImmediate(resolve));
    const many = this.#random === undefined ? recordsMax : this.#random.below(recordsMax) + 1;
    for (let i = 0; i < many; i++) {
      const split = open[this.#turn++ % open.length] as Split;
      if (split.next >= split.end) continue;
      const n = split.next++;
      this.context.output.emit({ split: split.name, n, key: n % this.#keys } satisfies Event, n);
    }
    const left = open.filter((split) => split.next < split.end).map((split) => split.next);
    const watermarkMs = Math.min(...left) - 1;
    if (left.length > 0 && watermarkMs > this.#watermarkMs) {
      this.#watermarkMs = watermarkMs;
      this.context.output.watermark(watermarkMs);
    }
    return 'more';
  }
  #watermarkMs = Number.NEGATIVE_INFINITY;

  override async snapshot(): Promise<OperatorPart> {
    return { list: this.#splits.map((split) => ({ ...split })) };
  }
}

/** Key group of a numeric key as the hash partitioner sees it. */
export function keyGroupOfNumber(key: number, maxParallelism: number): number {
  const writer = new ByteWriter(32);
  jsonCodec.encode(key as never, writer);
  return keyGroupOf(writer.bytes, 0, writer.position, maxParallelism);
}

/** Passes everything on, and every fifth `n` to the side output `fives` as well. */
export class FivesAside extends PassOperator {
  override record(value: unknown, timestampMs: number): void {
    this.context.output.emit(value, timestampMs);
    if ((value as Event).n % 5 === 0) this.context.output.emit(value, timestampMs, 'fives');
  }
}

interface Sum {
  count: number;
  sum: number;
  /** The newest `n` of each split. */
  readonly newest: Record<string, number>;
}

/**
 * Running count and sum of `n` per key. With `random` some records are answered later, but in order. `ordered`: the
 * records of one split come in the order of the split.
 */
export class KeyedSum extends PassOperator {
  readonly #sums = new Map<number, Sum>();
  readonly #random: Random | undefined;
  readonly #ordered: boolean;
  #open = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(random?: Random, ordered = false) {
    super();
    this.#random = random;
    this.#ordered = ordered;
  }

  override open(context: OperatorContext): void {
    this.context = context;
    for (const handle of context.restoredTables) {
      for (const [key, sum] of handle.data.sums as Array<[number, Sum]>) {
        if (!containsKeyGroup(context.keyGroups, keyGroupOfNumber(key, context.slot.maxParallelism))) continue;
        this.#sums.set(key, structuredClone(sum));
      }
    }
  }

  override record(value: unknown, timestampMs: number): void | Promise<void> {
    const event = value as Event;
    const wait = this.#random?.below(10);
    if (wait === 0) return Promise.resolve().then(() => this.#later(event, timestampMs));
    if (this.#open > 0 || wait === 1) this.#later(event, timestampMs);
    else this.#add(event, timestampMs);
  }

  override watermark(watermarkMs: number): void | Promise<void> {
    if (this.#open === 0) return this.context.output.watermark(watermarkMs);
    return this.#tail.then(() => this.context.output.watermark(watermarkMs));
  }

  override drain(): void | Promise<void> {
    return this.#open === 0 ? undefined : this.#tail;
  }

  override inFlight(): number {
    return this.#open;
  }

  override async snapshot(): Promise<OperatorPart> {
    const { uid: operator, keyGroups } = this.context;
    const sums = structuredClone([...this.#sums]);
    const table: SnapshotHandle = {
      store: 'test',
      operator,
      keyGroups,
      data: { sums },
      holders: [],
      bytesPut: 0,
      bytesLinked: 0,
    };
    return { table };
  }

  /** In flight: applied in a later turn, after what came before. */
  #later(event: Event, timestampMs: number): void {
    this.#open++;
    this.#tail = this.#tail.then(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      this.#open--;
      this.#add(event, timestampMs);
    });
  }

  #add(event: Event, timestampMs: number): void {
    const state = this.#sums.get(event.key) ?? { count: 0, sum: 0, newest: {} };
    const { key, split, n } = event;
    const before = state.newest[split] ?? -1;
    if (this.#ordered) assert(n > before, `${n} of split ${split} after ${before} for key ${key}`);
    state.newest[split] = n;
    state.count++;
    state.sum += n;
    this.#sums.set(key, state);
    this.context.output.emit({ key, count: state.count, sum: state.sum } satisfies SumResult, timestampMs);
  }
}

/** What an exactly-once sink has published; outlives the attempts. */
export class Published {
  readonly values: unknown[] = [];
  readonly #marks = new Set<string>();

  /** Idempotent by `mark`, as a real commit has to be. */
  commit(mark: string, values: readonly unknown[]): void {
    if (this.#marks.has(mark)) return;
    this.#marks.add(mark);
    this.values.push(...values);
  }
}

interface Transaction {
  readonly mark: string;
  readonly checkpoint: number;
  readonly values: readonly unknown[];
}

/** Refuses records behind their watermark. Two-phase commit: what came before a barrier is published when that checkpoint is registered. */
export class PublishingSink extends PassOperator {
  readonly #published: Published;
  readonly #random: Random | undefined;
  #values: unknown[] = [];
  #transactions: Transaction[] = [];
  #watermarkMs = Number.NEGATIVE_INFINITY;

  constructor(published: Published, random?: Random) {
    super();
    this.#published = published;
    this.#random = random;
  }

  override open(context: OperatorContext): void {
    this.context = context;
    // The checkpoint that is restored was registered: its transactions have to be finished.
    for (const one of (context.restoredList ?? []) as Transaction[]) this.#published.commit(one.mark, one.values);
  }

  override record(value: unknown, timestampMs: number): void | Promise<void> {
    assert(timestampMs > this.#watermarkMs, `a record of ${timestampMs} behind the watermark ${this.#watermarkMs}`);
    this.#values.push(value);
    if (this.#random?.below(16) === 0) return new Promise((resolve) => setImmediate(resolve));
  }

  override watermark(watermarkMs: number): void {
    assert(watermarkMs > this.#watermarkMs, `a watermark of ${watermarkMs} behind that of ${this.#watermarkMs}`);
    this.#watermarkMs = watermarkMs;
  }

  override async snapshot(checkpoint: number): Promise<OperatorPart> {
    const { generation, subtask } = this.context.slot;
    const values = this.#values;
    this.#values = [];
    if (values.length > 0) {
      this.#transactions.push({ mark: `${checkpoint}-${subtask}-g${generation}`, checkpoint, values });
    }
    return { list: [...this.#transactions] };
  }

  override complete(checkpoint: number): void {
    for (const one of this.#transactions) {
      if (one.checkpoint <= checkpoint) this.#published.commit(one.mark, one.values);
    }
    this.#transactions = this.#transactions.filter((one) => one.checkpoint > checkpoint);
  }
}
