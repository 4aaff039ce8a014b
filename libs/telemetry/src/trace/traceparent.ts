import type { SpanContext } from '@opentelemetry/api';
import type { TraceContext } from '../ports.ts';

const shape = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** A W3C `traceparent` (version 00) as OpenTelemetry holds it; undefined when it is not one. */
export function parseTraceparent(text: TraceContext): SpanContext | undefined {
  const match = shape.exec(text);
  if (match === null) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = match;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): TraceContext {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
