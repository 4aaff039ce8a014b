import { MillraceError } from '@millrace/kernel';
import type { Tracer as OtelTracerApi } from '@opentelemetry/api';
import { type Context, context, type Span as OtelSpan, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Span, SpanOptions, TraceContext, Tracer } from '../ports.ts';
import { formatTraceparent, parseTraceparent } from './traceparent.ts';

/** Our port over OpenTelemetry's API. A span is also active in OpenTelemetry's context while its work runs. */
export class OtelTracer implements Tracer {
  readonly #tracer: OtelTracerApi;

  constructor(tracer: OtelTracerApi) {
    this.#tracer = tracer;
  }

  async span<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
    const parent = contextOf(options.parent);
    const otel = this.#tracer.startSpan(name, { attributes: options.attributes ?? {} }, parent);
    const span: Span = {
      context: formatTraceparent(otel.spanContext()),
      set: (attributes) => void otel.setAttributes(attributes),
    };
    try {
      return await context.with(trace.setSpan(parent, otel), work, undefined, span);
    } catch (error) {
      markFailed(otel, error);
      throw error;
    } finally {
      otel.end();
    }
  }

  record(name: string, options: SpanOptions & { readonly startMs: number; readonly endMs: number }): void {
    const { attributes = {}, parent, startMs, endMs } = options;
    this.#tracer.startSpan(name, { attributes, startTime: hrTime(startMs) }, contextOf(parent)).end(hrTime(endMs));
  }
}

/**
 * Seconds and nanoseconds since the epoch: OpenTelemetry takes a small number for a reading of `performance.now()`. Whole
 * microseconds, because Zipkin refuses a batch in which one span has a fraction of them.
 */
function hrTime(epochMs: number): [number, number] {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1000) * 1000];
}

function contextOf(parent: TraceContext | undefined): Context {
  const spanContext = parent === undefined ? undefined : parseTraceparent(parent);
  return spanContext === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

function markFailed(otel: OtelSpan, error: unknown): void {
  const { code, kind, message } = MillraceError.from(error);
  otel.setAttributes({ 'error.code': code, 'error.kind': kind });
  otel.setStatus({ code: SpanStatusCode.ERROR, message });
}
