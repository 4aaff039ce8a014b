/** A record of a Kafka topic as it was written. */
export interface KafkaMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds: when it was created or appended, as the topic is configured. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** Names may repeat. */
  readonly headers: ReadonlyArray<readonly [name: string, value: Buffer | null]>;
}

/** Decodes values as JSON and skips those that are null (tombstones). The type is the caller's word. */
export function jsonValue<T>(message: KafkaMessage): T | undefined {
  return message.value === null ? undefined : (JSON.parse(message.value.toString('utf8')) as T);
}
