export { type MemoryTelemetry, memoryTelemetry, type RecordedLine, type RecordedSpan } from './memory-telemetry.ts';
export { OtlpSink, type SunkSpan } from './otlp-sink.ts';
