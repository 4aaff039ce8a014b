import { threadId } from 'node:worker_threads';
import { type Clock, sleep } from '@millrace/kernel';
import type { LogTarget } from './log/start-logging.ts';
import { MetricsRegistry } from './metrics/metrics-registry.ts';
import { noTelemetry } from './no-telemetry.ts';
import type { Logger, Telemetry } from './ports.ts';
import type { RunningTracer, SpanPipeline } from './trace/start-tracing.ts';
import { type Environment, traceSettings } from './trace/trace-settings.ts';

export interface TelemetryOptions {
  /** Name of the process in traces and logs (`task-runner`); OTEL_SERVICE_NAME wins. */
  readonly service: string;
  readonly clock: Clock;
  /** Usually `process.env`. */
  readonly env: Environment;
  /** More about this process in traces, for example `{ 'millrace.runner': id }`. */
  readonly attributes?: Readonly<Record<string, string | number>>;
  readonly logTo?: LogTarget;
}

export interface RunningTelemetry {
  readonly telemetry: Telemetry;
  /** What `renderPrometheus` reads. Its `collect()` is plain data: a worker thread posts it to its parent. */
  readonly metrics: MetricsRegistry;
  /** True when spans are exported: then libraries' interceptors are worth installing. */
  readonly tracing: boolean;
  /** Where finished spans go; absent when none are exported. */
  readonly spans?: SpanPipeline;
  /** Sends what is buffered, waiting at most three seconds, and ends. Idempotent. Call it before the thread ends. */
  shutdown(): Promise<void>;
}

const shutdownTimeoutMs = 3000;
const noTracing: RunningTracer = { tracer: noTelemetry.tracer, shutdown: () => Promise.resolve() };

/**
 * Telemetry of a process or of a worker thread, by the standard OTEL_* variables and MILLRACE_LOG(_LEVEL). Without any
 * of them traces are off and OpenTelemetry's SDK is not even loaded.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<RunningTelemetry> {
  const { clock, env } = options;
  const service = env.OTEL_SERVICE_NAME ?? options.service;
  const { startLogging } = await import('./log/start-logging.ts');
  const log = startLogging({ service, clock, env, target: options.logTo, isTty: process.stderr.isTTY === true });
  const settings = traceSettings(env);
  const identity = {
    'service.name': service,
    'process.pid': process.pid,
    'thread.id': threadId,
    ...options.attributes,
  };
  const traces = settings.exporter === 'none' ? noTracing : await tracingTo(settings, identity, log);
  const metrics = new MetricsRegistry();
  let ending: Promise<void> | undefined;
  return {
    telemetry: { tracer: traces.tracer, metrics, log },
    metrics,
    tracing: settings.exporter !== 'none',
    ...(traces.pipeline === undefined ? {} : { spans: traces.pipeline }),
    shutdown: () => (ending ??= endWithin(clock, traces, log)),
  };
}

/** Loaded only when wanted: the SDK costs a process or thread a good part of its start. */
async function tracingTo(...args: Parameters<typeof import('./trace/start-tracing.ts').startTracing>) {
  const { startTracing } = await import('./trace/start-tracing.ts');
  return startTracing(...args);
}

/** Telemetry never holds a process up: a collector that does not answer costs its spans, and a line in the log. */
async function endWithin(clock: Clock, traces: RunningTracer, log: Logger): Promise<void> {
  const late = new AbortController();
  const timeout = sleep(clock, shutdownTimeoutMs, late.signal).then(
    () => log.warn('the trace collector did not take the last spans in time'),
    () => undefined, // the shutdown was first
  );
  const ended = traces
    .shutdown()
    .catch((error: unknown) => log.warn('the trace collector did not take the last spans', { error }))
    .finally(() => late.abort());
  await Promise.race([ended, timeout]);
}
