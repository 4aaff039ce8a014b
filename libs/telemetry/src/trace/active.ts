import { isSpanContextValid, trace } from '@opentelemetry/api';
import type { TraceContext } from '../ports.ts';
import { formatTraceparent } from './traceparent.ts';

/**
 * The span that OpenTelemetry's own context holds. Only for the border to libraries that carry it there (Temporal's
 * interceptors around an activity); from the border on the context is an argument. Imported as `@millrace/telemetry/otel`,
 * so that threads that trace nothing do not load OpenTelemetry.
 */
export function activeTraceContext(): TraceContext | undefined {
  const active = trace.getActiveSpan()?.spanContext();
  return active !== undefined && isSpanContextValid(active) ? formatTraceparent(active) : undefined;
}
