export { noTelemetry } from './no-telemetry.ts';
export type {
  Attributes,
  AttributeValue,
  Counter,
  Histogram,
  LogFields,
  Logger,
  Metrics,
  Span,
  SpanOptions,
  Telemetry,
  TraceContext,
  Tracer,
} from './ports.ts';
