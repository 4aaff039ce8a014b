import type { Split } from '@millrace/streams';
import type { KafkaMessage } from './message.ts';

/** What a split's `data` says, and what a checkpoint keeps of it. */
export interface KafkaSplitData {
  readonly topic: string;
  readonly partition: number;
  /** Where reading begins; a position behind it counts. */
  readonly startOffset: number;
  /** Where reading ends; absent: never. */
  readonly stopOffset?: number;
}

/** One partition: what was fetched and has not been emitted, and where it stands. */
export class PartitionQueue {
  readonly split: Split;
  readonly topic: string;
  readonly partition: number;
  readonly stopOffset: number;
  /** Offset of the next record to emit. */
  position: number;
  fetchOffset: number;
  /** A request for it is under way. */
  fetching = false;
  #chunks: Array<{ readonly messages: readonly KafkaMessage[]; readonly nextOffset: number; readonly bytes: number }> =
    [];
  #at = 0;
  #bytes = 0;

  constructor(split: Split, position: number) {
    const data = split.data as KafkaSplitData;
    this.split = split;
    this.topic = data.topic;
    this.partition = data.partition;
    this.position = Math.max(position, data.startOffset);
    this.stopOffset = data.stopOffset ?? Number.POSITIVE_INFINITY;
    this.fetchOffset = this.position;
  }

  get name(): string {
    return `${this.topic}/${this.partition}`;
  }

  /** Bytes fetched and not emitted. */
  get bytes(): number {
    return this.#bytes;
  }

  get empty(): boolean {
    return this.#chunks.length === 0;
  }

  get done(): boolean {
    return this.position >= this.stopOffset;
  }

  /** Is there more to fetch for it? */
  get fetchable(): boolean {
    return !this.fetching && this.fetchOffset < this.stopOffset;
  }

  push(messages: readonly KafkaMessage[], nextOffset: number, bytes: number): void {
    this.fetchOffset = nextOffset;
    this.#chunks.push({ messages, nextOffset, bytes });
    this.#bytes += bytes;
    if (messages.length === 0) this.#settle();
  }

  /** Hands out at most `max` messages in order; returns how many. The position is exact between two calls. */
  take(max: number, emit: (message: KafkaMessage) => void): number {
    let taken = 0;
    for (let chunk = this.#chunks[0]; chunk !== undefined && taken < max; chunk = this.#chunks[0]) {
      const { messages } = chunk;
      while (this.#at < messages.length && taken < max) {
        const message = messages[this.#at] as KafkaMessage;
        if (message.offset >= this.stopOffset) {
          this.clear();
          this.position = this.stopOffset;
          return taken;
        }
        emit(message);
        this.#at++;
        this.position = message.offset + 1;
        taken++;
      }
      if (this.#at < messages.length) return taken;
      this.#settle();
    }
    return taken;
  }

  clear(): void {
    this.#chunks = [];
    this.#at = 0;
    this.#bytes = 0;
  }

  /** The first chunks that are used up: the position goes behind markers and aborted records, too. */
  #settle(): void {
    for (
      let chunk = this.#chunks[0];
      chunk !== undefined && this.#at >= chunk.messages.length;
      chunk = this.#chunks[0]
    ) {
      this.#chunks.shift();
      this.#at = 0;
      this.#bytes -= chunk.bytes;
      this.position = Math.min(chunk.nextOffset, this.stopOffset);
    }
  }
}
