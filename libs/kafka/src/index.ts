export type { KafkaRecord } from './kafka-record.ts';
export { type KafkaSinkOptions, kafkaSink } from './kafka-sink.ts';
export { type KafkaSourceOptions, kafkaSource } from './kafka-source.ts';
export { jsonValue, type KafkaMessage } from './message.ts';
export type { OffsetSpec } from './offsets.ts';
export type { Isolation } from './record-batches.ts';
export type { KafkaConnection } from './settings.ts';
