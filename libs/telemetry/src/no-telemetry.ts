import type { Counter, Histogram, Logger, Metrics, Span, Telemetry, Tracer } from './ports.ts';

const span: Span = { context: undefined, set: () => undefined };
const tracer: Tracer = { span: (_name, _options, work) => work(span), record: () => undefined };
const counter: Counter = { add: () => undefined };
const histogram: Histogram = { record: () => undefined };
const metrics: Metrics = { counter: () => counter, histogram: () => histogram, gauge: () => () => undefined };
const log: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};

/** Records nothing. */
export const noTelemetry: Telemetry = { tracer, metrics, log };
