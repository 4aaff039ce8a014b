import { type Clock, MillraceError, systemClock } from '@millrace/kernel';
import { MetricsRegistry } from '../metrics/metrics-registry.ts';
import type { Attributes, LogFields, Logger, Span, SpanOptions, Telemetry, TraceContext, Tracer } from '../ports.ts';

export interface RecordedSpan {
  readonly name: string;
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly attributes: Attributes;
  readonly startMs: number;
  readonly endMs: number;
  readonly error: unknown;
}

export interface RecordedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: LogFields;
}

export interface MemoryTelemetry {
  readonly telemetry: Telemetry;
  readonly metrics: MetricsRegistry;
  /** Ended spans, in order of their ends. */
  readonly spans: readonly RecordedSpan[];
  readonly lines: readonly RecordedLine[];
}

/** Telemetry that keeps everything in memory, for tests. Ids are counted, so they are the same in every run. */
export function memoryTelemetry(clock: Clock = systemClock): MemoryTelemetry {
  const spans: RecordedSpan[] = [];
  const lines: RecordedLine[] = [];
  const metrics = new MetricsRegistry();
  const tracer = memoryTracer(clock, spans);
  return { telemetry: { tracer, metrics, log: memoryLogger(lines, {}) }, metrics, spans, lines };
}

function memoryTracer(clock: Clock, spans: RecordedSpan[]): Tracer {
  let ids = 0;
  const open = ({ parent }: SpanOptions): TraceContext => {
    const id = (++ids).toString(16);
    const trace = parent?.split('-')[1] ?? id.padStart(32, '0');
    return `00-${trace}-${id.padStart(16, '0')}-01`;
  };
  return {
    async span(name, options, work) {
      const startMs = clock.nowMs();
      const context = open(options);
      let attributes = options.attributes ?? {};
      let failure: unknown;
      const span: Span = {
        context,
        set: (more) => {
          attributes = { ...attributes, ...more };
        },
      };
      try {
        return await work(span);
      } catch (error) {
        failure = MillraceError.from(error);
        throw error;
      } finally {
        const parent = options.parent;
        spans.push({ name, context, parent, attributes, startMs, endMs: clock.nowMs(), error: failure });
      }
    },
    record(name, options) {
      const { parent, attributes = {}, startMs, endMs } = options;
      spans.push({ name, context: open(options), parent, attributes, startMs, endMs, error: undefined });
    },
  };
}

function memoryLogger(lines: RecordedLine[], base: LogFields): Logger {
  const at = (level: RecordedLine['level']) => (message: string, fields?: LogFields) =>
    void lines.push({ level, message, fields: { ...base, ...fields } });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => memoryLogger(lines, { ...base, ...fields }),
  };
}
