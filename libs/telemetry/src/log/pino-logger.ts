import { errorToJson, MillraceError } from '@millrace/kernel';
import pino from 'pino';
import type { LogFields, Logger } from '../ports.ts';
import { parseTraceparent } from '../trace/traceparent.ts';

/**
 * Our port over pino. Two fields are special: `trace` (a traceparent) becomes `traceId` and `spanId`, and errors become
 * plain data with code and kind.
 */
export class PinoLogger implements Logger {
  readonly #pino: pino.Logger;

  constructor(logger: pino.Logger) {
    this.#pino = logger;
  }

  debug(message: string, fields?: LogFields): void {
    if (this.#pino.isLevelEnabled('debug')) this.#pino.debug(plain(fields), message);
  }

  info(message: string, fields?: LogFields): void {
    this.#pino.info(plain(fields), message);
  }

  warn(message: string, fields?: LogFields): void {
    this.#pino.warn(plain(fields), message);
  }

  error(message: string, fields?: LogFields): void {
    this.#pino.error(plain(fields), message);
  }

  child(fields: LogFields): Logger {
    return new PinoLogger(this.#pino.child(plain(fields)));
  }
}

function plain(fields: LogFields | undefined): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields ?? {})) {
    if (value === undefined) continue;
    if (key === 'trace' && typeof value === 'string') {
      const parsed = parseTraceparent(value);
      if (parsed !== undefined) Object.assign(out, { traceId: parsed.traceId, spanId: parsed.spanId });
    } else if (value instanceof Error) {
      out[key] = { ...errorToJson(value), kind: MillraceError.from(value).kind };
    } else out[key] = typeof value === 'bigint' ? String(value) : value;
  }
  return out;
}
