import type { OutgoingBatch, ProducerIdentity, Transactions } from '../transactions.ts';

type State = 'empty' | 'ongoing' | 'committed' | 'aborted';

interface Name {
  producerId: string;
  epoch: number;
  state: State;
}

interface Stored {
  readonly value: string | null;
  readonly partition: number;
  readonly writer: string;
}

const writerOf = ({ id, producerId, epoch }: ProducerIdentity): string => `${id}/${producerId}/${epoch}`;

/** One broker's transactions by the rules that Kafka's coordinator follows, with a hook before each step. */
export class MemoryBroker {
  readonly names = new Map<string, Name>();
  readonly steps: string[] = [];
  before: ((step: string) => void) | undefined;
  readonly #log: Stored[] = [];
  readonly #outcome = new Map<string, State>();
  readonly #sequences = new Map<string, number>();

  client(): Transactions {
    return {
      partitions: () => Promise.resolve(3),
      begin: (id) => this.#step(`begin ${id}`, () => this.#begin(id as string)),
      enlist: (writer) => this.#step(`enlist ${writer.id}`, () => this.#enlist(writer)),
      append: (writer, batches) => this.#step(`append ${writer.id}`, () => this.#append(writer, batches)),
      commit: (writer) => this.#step(`commit ${writer.id}`, () => this.#end(writer, 'committed')),
      abort: async (writer) => void (await this.#step(`abort ${writer.id}`, () => this.#end(writer, 'aborted'))),
      open: (prefix) => this.#step(`list ${prefix}`, () => this.open(prefix)),
      close: () => Promise.resolve(),
    };
  }

  /** What a reader of committed records sees. */
  get committed(): readonly string[] {
    return this.#log.flatMap(({ value, writer }) =>
      value !== null && this.#outcome.get(writer) === 'committed' ? [value] : [],
    );
  }

  open(prefix = ''): readonly string[] {
    return [...this.names].filter(([id, { state }]) => state === 'ongoing' && id.startsWith(prefix)).map(([id]) => id);
  }

  /** As `transaction.timeout.ms` does. */
  expire(): void {
    for (const [id, name] of this.names) {
      if (name.state !== 'ongoing') continue;
      this.#outcome.set(writerOf({ id, ...name }), 'aborted');
      name.state = 'aborted';
      name.epoch++;
    }
  }

  async #step<T>(step: string, work: () => T): Promise<T> {
    await Promise.resolve();
    this.before?.(step);
    this.steps.push(step);
    return work();
  }

  #begin(id: string): ProducerIdentity {
    const known = this.names.get(id);
    if (known?.state === 'ongoing') this.#outcome.set(writerOf({ id, ...known }), 'aborted');
    const name: Name = {
      producerId: known?.producerId ?? String(this.names.size + 1),
      epoch: (known?.epoch ?? -1) + 1,
      state: 'empty',
    };
    this.names.set(id, name);
    return { id, producerId: name.producerId, epoch: name.epoch };
  }

  #enlist(writer: ProducerIdentity): void {
    this.#current(writer).state = 'ongoing';
    this.#outcome.set(writerOf(writer), 'ongoing');
  }

  #append(writer: ProducerIdentity, batches: readonly OutgoingBatch[]): void {
    if (this.#current(writer).state !== 'ongoing') throw new Error(`${writer.id}: append outside a transaction`);
    for (const { topic, partition, firstSequence, messages } of batches) {
      const at = `${writerOf(writer)}/${topic}/${partition}`;
      if ((this.#sequences.get(at) ?? 0) !== firstSequence) throw new Error(`${at}: out of sequence`);
      this.#sequences.set(at, firstSequence + messages.length);
      for (const { value } of messages) {
        this.#log.push({ value: value?.toString() ?? null, partition, writer: writerOf(writer) });
      }
    }
  }

  #end(writer: ProducerIdentity, to: 'committed' | 'aborted'): 'done' | 'lost' {
    const name = this.names.get(writer.id as string);
    if (name?.producerId !== writer.producerId || name.epoch !== writer.epoch) return 'lost';
    if (name.state === to) return 'done';
    if (name.state !== 'ongoing') return 'lost';
    name.state = to;
    this.#outcome.set(writerOf(writer), to);
    return 'done';
  }

  #current(writer: ProducerIdentity): Name {
    const name = this.names.get(writer.id as string);
    if (name?.producerId === writer.producerId && name.epoch === writer.epoch) return name;
    throw new Error(`${writer.id}: fenced`);
  }
}
