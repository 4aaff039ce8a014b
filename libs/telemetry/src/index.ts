export type { LogTarget } from './log/start-logging.ts';
export { type MetricFamily, type MetricSample, MetricsRegistry } from './metrics/metrics-registry.ts';
export { MetricsServer } from './metrics/metrics-server.ts';
export { type MetricSource, prometheusContentType, renderPrometheus } from './metrics/prometheus.ts';
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
export { type RunningTelemetry, startTelemetry, type TelemetryOptions } from './start-telemetry.ts';
export type { SpanPipeline } from './trace/start-tracing.ts';
export type { Environment } from './trace/trace-settings.ts';
export { formatTraceparent, parseTraceparent } from './trace/traceparent.ts';
