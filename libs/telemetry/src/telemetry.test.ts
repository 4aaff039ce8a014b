import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { systemClock } from '@millrace/kernel';
import { context, trace } from '@opentelemetry/api';
import { afterEach, expect, test } from 'vitest';
import { startTelemetry } from './start-telemetry.ts';
import { OtlpSink } from './testing/index.ts';
import { activeTraceContext } from './trace/active.ts';
import { traceSettings } from './trace/trace-settings.ts';
import { formatTraceparent, parseTraceparent } from './trace/traceparent.ts';

const sinks: OtlpSink[] = [];
afterEach(async () => {
  await Promise.all(sinks.splice(0).map((sink) => sink.close()));
});

async function startSink(): Promise<OtlpSink> {
  const sink = await OtlpSink.start();
  sinks.push(sink);
  return sink;
}

/** Answers every request with a status. */
async function startCollector(status: number, take: (body: string) => void): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      take(Buffer.concat(parts).toString());
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
const quiet = { write: () => undefined };

test('spans reach a collector with their real parents, attributes, times and failures', async () => {
  const sink = await startSink();
  const running = await startTelemetry({ service: 'a', clock: systemClock, env: sink.env, logTo: quiet });
  const { tracer } = running.telemetry;
  expect(running.tracing).toBe(true);
  await tracer.span('round', { attributes: { checkpoint: 7 } }, async (round) => {
    expect(activeTraceContext()).toBe(round.context);
    await tracer.span('drain', { parent: round.context }, async (drain) => {
      drain.set({ bytes: 5 });
      tracer.record('align', { parent: drain.context, startMs: 1000, endMs: 1500 });
    });
    expect(trace.getActiveSpan()?.spanContext().spanId).toBe(round.context?.split('-')[2]);
    await tracer
      .span('flush', { parent: round.context }, () => Promise.reject(new Error('disk full')))
      .catch(() => undefined);
  });
  await tracer.span('elsewhere', {}, async () => undefined);
  await running.shutdown();
  const spans = await sink.until((all) => all.length >= 5);
  const named = (name: string) => spans.find((span) => span.name === name) as (typeof spans)[number];
  expect(sink.path(named('align'))).toEqual(['round', 'drain', 'align']);
  expect(sink.path(named('flush'))).toEqual(['round', 'flush']);
  expect(named('round')).toMatchObject({ service: 'a', failed: false, attributes: { checkpoint: 7 } });
  expect(named('drain').attributes).toEqual({ bytes: 5 });
  expect(named('align')).toMatchObject({ startMs: 1000, endMs: 1500 });
  expect(named('flush')).toMatchObject({ failed: true, attributes: { 'error.code': 'unexpected' } });
  expect(named('elsewhere').traceId).not.toBe(named('round').traceId);
  expect(context.active()).toBeDefined();
});

test('Zipkin gets whole microseconds, which are all that it takes', async () => {
  const bodies: string[] = [];
  const collector = await startCollector(202, (body) => bodies.push(body));
  const env = { OTEL_TRACES_EXPORTER: 'zipkin', OTEL_EXPORTER_ZIPKIN_ENDPOINT: collector.url };
  const running = await startTelemetry({ service: 'a', clock: systemClock, env, logTo: quiet });
  running.telemetry.tracer.record('align', { startMs: 1000.1234567, endMs: 1500.7654321 });
  await running.shutdown();
  collector.server.close();
  const spans = bodies.flatMap((body) => JSON.parse(body) as { timestamp: number; duration: number }[]);
  expect(spans).toMatchObject([{ timestamp: 1_000_123, duration: 500_642 }]);
});

test('the log says when a collector refuses spans', async () => {
  const collector = await startCollector(400, () => undefined);
  const lines: string[] = [];
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
  const logTo = { write: (line: string) => void lines.push(line) };
  const running = await startTelemetry({ service: 'a', clock: systemClock, env, logTo });
  await running.telemetry.tracer.span('x', {}, async () => undefined);
  await running.shutdown();
  collector.server.close();
  expect(lines.join()).toMatch(/traces: a problem of the exporter.*400|Bad Request/);
});

test('one trace joins processes and worker threads', async () => {
  const sink = await startSink();
  const running = await startTelemetry({ service: 'here', clock: systemClock, env: sink.env, logTo: quiet });
  await running.telemetry.tracer.span('top', {}, async ({ context: parent }) => {
    const file = new URL('./testing/traced-process.fixture.ts', import.meta.url).pathname;
    const env = { ...process.env, ...sink.env, PARENT: parent, OTEL_SERVICE_NAME: 'there' };
    await promisify(execFile)(process.execPath, [file], { env });
  });
  await running.shutdown();
  const spans = await sink.until((all) => all.length >= 3);
  const thread = spans.find(({ name }) => name === 'in-thread') as (typeof spans)[number];
  expect(sink.path(thread)).toEqual(['top', 'in-process', 'in-thread']);
  expect(thread.service).toBe('there');
});

test('without variables traces are off: work runs, spans have no context', async () => {
  const running = await startTelemetry({ service: 'a', clock: systemClock, env: {}, logTo: quiet });
  expect(running.tracing).toBe(false);
  const result = await running.telemetry.tracer.span('x', {}, async (span) => span.context ?? 'none');
  expect(result).toBe('none');
  expect(activeTraceContext()).toBeUndefined();
  await running.shutdown();
});

test('a collector that is not there holds nothing up and fails no work', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
  const running = await startTelemetry({ service: 'a', clock: systemClock, env, logTo: quiet });
  await expect(running.telemetry.tracer.span('x', {}, async () => 'done')).resolves.toBe('done');
  const startedMs = performance.now();
  await running.shutdown();
  expect(performance.now() - startedMs).toBeLessThan(4000);
});

test('the standard variables decide where spans go', () => {
  expect(traceSettings({})).toEqual({ exporter: 'none' });
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/' })).toEqual({
    exporter: 'otlp',
    protocol: 'http/protobuf',
    url: 'http://c:4318/v1/traces',
  });
  expect(traceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_TRACES_EXPORTER: 'none' }).exporter).toBe(
    'none',
  );
  expect(traceSettings({ OTEL_TRACES_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'true' }).exporter).toBe('none');
  const zipkin = { OTEL_TRACES_EXPORTER: 'zipkin', OTEL_EXPORTER_ZIPKIN_ENDPOINT: 'http://z/api/v2/spans' };
  expect(traceSettings(zipkin)).toEqual({ exporter: 'zipkin', url: 'http://z/api/v2/spans' });
  expect(() => traceSettings({ OTEL_TRACES_EXPORTER: 'jaeger' })).toThrow(/OTEL_TRACES_EXPORTER.*allowed/);
  expect(() => traceSettings({ OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toThrow(
    /PROTOCOL/,
  );
});

test('a traceparent is read and written back; what is not one is no parent', () => {
  const text = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const parsed = parseTraceparent(text);
  expect(parsed === undefined ? '' : formatTraceparent(parsed)).toBe(text);
  for (const bad of ['', 'x', text.slice(1), `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
    expect(parseTraceparent(bad)).toBeUndefined();
  }
});
