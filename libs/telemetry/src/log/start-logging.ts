import { type Clock, MillraceError } from '@millrace/kernel';
import pino from 'pino';
import type { Logger } from '../ports.ts';
import type { Environment } from '../trace/trace-settings.ts';
import { PinoLogger } from './pino-logger.ts';
import { textLine } from './text-line.ts';

/** Takes whole lines with their newline. */
export interface LogTarget {
  write(line: string): void;
}

export interface LogOptions {
  readonly service: string;
  readonly clock: Clock;
  readonly env: Environment;
  /** Default: standard error, written at once, from worker threads too. */
  readonly target?: LogTarget | undefined;
  readonly isTty: boolean;
}

const levels = ['debug', 'info', 'warn', 'error', 'silent'];

/** MILLRACE_LOG: `json` or `text` (default: text on a terminal). MILLRACE_LOG_LEVEL: debug, info (default), warn, error, silent. */
export function startLogging({ service, clock, env, target, isTty }: LogOptions): Logger {
  const level = env.MILLRACE_LOG_LEVEL ?? 'info';
  if (!levels.includes(level)) throw bad('MILLRACE_LOG_LEVEL', level, levels);
  const form = env.MILLRACE_LOG ?? (isTty ? 'text' : 'json');
  if (form !== 'text' && form !== 'json') throw bad('MILLRACE_LOG', form, ['json', 'text']);
  const out: LogTarget = target ?? pino.destination({ dest: 2, sync: true });
  const lines: LogTarget = form === 'json' ? out : { write: (line) => out.write(textLine(line)) };
  return new PinoLogger(
    pino({ level, base: { service, pid: process.pid }, timestamp: () => `,"time":${clock.nowMs()}` }, lines),
  );
}

function bad(name: string, value: string, allowed: readonly string[]): MillraceError {
  return new MillraceError('bad-setting', `${name} is ${JSON.stringify(value)}; allowed: ${allowed.join(', ')}`);
}
