import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type Clock, sleep, systemClock } from '@millrace/kernel';
import type { AttributeValue } from '../ports.ts';
import type { Environment } from '../trace/trace-settings.ts';

/** A span as some process sent it. */
export interface SunkSpan {
  readonly service: string;
  readonly resource: Readonly<Record<string, AttributeValue>>;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
}

const bodyBytesMax = 64 * 1024 * 1024;

/** A collector for tests: takes the spans of any number of processes over OTLP/HTTP with JSON. */
export class OtlpSink {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #spans: SunkSpan[] = [];

  private constructor(server: Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
  }

  static async start(port = 0, clock: Clock = systemClock): Promise<OtlpSink> {
    const sink = new OtlpSink(
      createServer((request, response) => {
        sink.#take(request).then(
          () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
          (error: unknown) => response.writeHead(400).end(String(error)),
        );
      }),
      clock,
    );
    await new Promise<void>((resolve, reject) => {
      sink.#server.once('error', reject);
      sink.#server.listen(port, '127.0.0.1', resolve);
    });
    return sink;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Variables that make a process send its spans here, soon. */
  get env(): Environment {
    return {
      OTEL_TRACES_EXPORTER: 'otlp',
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
  }

  get spans(): readonly SunkSpan[] {
    return this.#spans;
  }

  /** The spans once `enough` holds of them; rejects after `timeoutMs`, naming the spans that came. */
  async until(enough: (spans: readonly SunkSpan[]) => boolean, timeoutMs = 10_000): Promise<readonly SunkSpan[]> {
    const giveUpMs = this.#clock.monotonicMs() + timeoutMs;
    while (!enough(this.#spans)) {
      if (this.#clock.monotonicMs() >= giveUpMs) {
        throw new Error(`not the spans that were expected; came: ${this.#spans.map(({ name }) => name).join(', ')}`);
      }
      await sleep(this.#clock, 20);
    }
    return this.#spans;
  }

  /** Names from the trace's root down to `span`; begins with `?` when an ancestor never came. */
  path(span: SunkSpan): string[] {
    if (span.parentSpanId === undefined) return [span.name];
    const parent = this.#spans.find(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId);
    return [...(parent === undefined ? ['?'] : this.path(parent)), span.name];
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  async #take(request: IncomingMessage): Promise<void> {
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > bodyBytesMax) throw new RangeError('body too large');
      parts.push(part);
    }
    const body = Buffer.concat(parts);
    const json = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    if (request.url === '/v1/traces') this.#spans.push(...spansOf(JSON.parse(json.toString()) as OtlpTraces));
  }
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
  };
}
interface OtlpTraces {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly OtlpAttribute[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly OtlpSpan[] }[];
  }[];
}
interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly OtlpAttribute[];
  readonly status?: { readonly code?: number };
}

function* spansOf(traces: OtlpTraces): Iterable<SunkSpan> {
  for (const { resource, scopeSpans = [] } of traces.resourceSpans ?? []) {
    const about = attributesOf(resource?.attributes);
    for (const { spans = [] } of scopeSpans) for (const span of spans) yield sunk(span, about);
  }
}

function sunk(span: OtlpSpan, resource: Readonly<Record<string, AttributeValue>>): SunkSpan {
  return {
    service: String(resource['service.name']),
    resource,
    name: span.name,
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId === '' ? undefined : span.parentSpanId,
    attributes: attributesOf(span.attributes),
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
    failed: span.status?.code === 2,
  };
}

function attributesOf(attributes: readonly OtlpAttribute[] = []): Record<string, AttributeValue> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, boolValue, doubleValue, intValue } = value;
      return [key, stringValue ?? boolValue ?? doubleValue ?? Number(intValue)];
    }),
  );
}
