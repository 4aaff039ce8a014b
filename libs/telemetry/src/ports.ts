/** A W3C `traceparent` value. Context is an argument everywhere: nothing in Millrace reads an ambient span. */
export type TraceContext = string;

export type AttributeValue = string | number | boolean;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface Span {
  /** What a child in another thread or process names as its parent; undefined when nothing is recorded. */
  readonly context: TraceContext | undefined;
  set(attributes: Attributes): void;
}

export interface SpanOptions {
  readonly parent?: TraceContext | undefined;
  readonly attributes?: Attributes;
}

export interface Tracer {
  /** Runs `work` in a span that ends when it settles; a rejection marks the span as failed and passes on. */
  span<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
  /** A span that has already happened, for work timed by plain fields on a hot path. Times are epoch milliseconds. */
  record(name: string, options: SpanOptions & { readonly startMs: number; readonly endMs: number }): void;
}

export interface Counter {
  add(amount: number, labels?: Attributes): void;
}

export interface Histogram {
  record(value: number, labels?: Attributes): void;
}

export interface Metrics {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string): Histogram;
  /** `read` is called at collection, so that the hot path only touches plain fields. The result stops the reading. */
  gauge(name: string, help: string, read: () => number, labels?: Attributes): () => void;
}

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

/** What every component receives instead of globals. */
export interface Telemetry {
  readonly tracer: Tracer;
  readonly metrics: Metrics;
  readonly log: Logger;
}
