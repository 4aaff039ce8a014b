import type { Resource } from '@opentelemetry/resources';
import type { SpanProcessor } from '@opentelemetry/sdk-trace-node';
import type { Logger, Tracer } from '../ports.ts';
import { OtelTracer } from './otel-tracer.ts';
import type { TraceSettings } from './trace-settings.ts';

/** Where finished spans go, for libraries that bring spans of their own (Temporal's workflow sandbox). */
export interface SpanPipeline {
  readonly processor: SpanProcessor;
  readonly resource: Resource;
}

export interface RunningTracer {
  readonly tracer: Tracer;
  readonly pipeline?: SpanPipeline;
  /** Sends what is buffered and ends. */
  shutdown(): Promise<void>;
}

type Wanted = Exclude<TraceSettings, { exporter: 'none' }>;

async function exporterOf(settings: Wanted) {
  if (settings.exporter === 'zipkin') {
    const { ZipkinExporter } = await import('@opentelemetry/exporter-zipkin');
    return new ZipkinExporter(settings.url === undefined ? {} : { url: settings.url });
  }
  const { OTLPTraceExporter } =
    settings.protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter({ url: settings.url });
}

/**
 * Starts OpenTelemetry in this process or worker thread: provider, AsyncLocalStorage context and W3C propagation are
 * registered globally, because that is where libraries (Temporal's interceptors) look for them. The SDK is loaded only
 * here, so that a process without tracing does not pay for it.
 */
export async function startTracing(
  settings: Wanted,
  identity: Readonly<Record<string, string | number>>,
  log: Logger,
): Promise<RunningTracer> {
  const [{ BatchSpanProcessor, NodeTracerProvider }, resources, api, exporter] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/api'),
    exporterOf(settings),
  ]);
  const toLog = (problem: string): void => log.warn('traces: a problem of the exporter', { problem });
  const logger = { error: toLog, warn: toLog, info: ignored, debug: ignored, verbose: ignored };
  api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  const fromEnvironment = resources.detectResources({ detectors: [resources.envDetector] });
  const resource = resources.resourceFromAttributes({ ...identity }).merge(fromEnvironment);
  const processor = new BatchSpanProcessor(exporter);
  const provider = new NodeTracerProvider({ resource, spanProcessors: [processor] });
  provider.register();
  return {
    tracer: new OtelTracer(provider.getTracer('millrace')),
    pipeline: { processor, resource },
    async shutdown() {
      await provider.shutdown();
      api.diag.disable();
      api.trace.disable();
      api.context.disable();
      api.propagation.disable();
    },
  };
}

function ignored(): void {}
