import { MillraceError } from '@millrace/kernel';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where spans go, as the standard OTEL_* variables say. */
export type TraceSettings =
  | { readonly exporter: 'none' }
  | { readonly exporter: 'zipkin'; readonly url: string | undefined }
  | { readonly exporter: 'otlp'; readonly protocol: 'http/protobuf' | 'http/json'; readonly url: string };

const defaultEndpoint = 'http://localhost:4318';

/** Traces are on when OTEL_TRACES_EXPORTER or an OTLP endpoint is set; throws `bad-setting` for what is not supported. */
export function traceSettings(env: Environment): TraceSettings {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const exporter = env.OTEL_TRACES_EXPORTER ?? (endpoint === undefined ? 'none' : 'otlp');
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || exporter === 'none' || exporter === '') {
    return { exporter: 'none' };
  }
  if (exporter === 'zipkin') return { exporter, url: env.OTEL_EXPORTER_ZIPKIN_ENDPOINT };
  if (exporter !== 'otlp') throw bad('OTEL_TRACES_EXPORTER', exporter, 'otlp, zipkin or none');
  return { exporter, protocol: protocolOf(env), url: urlOf(env) };
}

function protocolOf(env: Environment): 'http/protobuf' | 'http/json' {
  const name =
    'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' in env ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  const protocol = env[name] ?? 'http/protobuf';
  if (protocol === 'http/protobuf' || protocol === 'http/json') return protocol;
  throw bad(name, protocol, 'http/protobuf or http/json');
}

function urlOf(env: Environment): string {
  const whole = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  if (whole !== undefined) return whole;
  return `${(env.OTEL_EXPORTER_OTLP_ENDPOINT ?? defaultEndpoint).replace(/\/$/, '')}/v1/traces`;
}

function bad(name: string, value: string, allowed: string): MillraceError {
  return new MillraceError('bad-setting', `${name} is ${JSON.stringify(value)}; allowed: ${allowed}`);
}
