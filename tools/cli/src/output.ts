import { errorToJson, MillraceError } from '@millrace/kernel';

/** Where a command says things: words for people, one JSON object a line for scripts. */
export interface Report {
  readonly json: boolean;
  /** A finished fact. In JSON mode `data` is printed instead of `text`. */
  say(text: string, data: Readonly<Record<string, unknown>>): void;
  /** Progress in words; goes to standard error in JSON mode, so that standard output stays parseable. */
  note(text: string): void;
  /** Live figures that replace the last ones on a terminal. */
  live(text: string, data: Readonly<Record<string, unknown>>): void;
}

const liveIntervalMs = 5000;

/** A report on this process's terminal. */
export function createReport(json: boolean): Report {
  const interactive = !json && process.stdout.isTTY === true;
  let liveShown = false;
  let lastLiveMs = Number.NEGATIVE_INFINITY;
  const clearLive = (): void => {
    if (liveShown) process.stdout.write('\r\u001b[2K');
    liveShown = false;
  };
  return {
    json,
    say(text, data) {
      clearLive();
      process.stdout.write(`${json ? JSON.stringify(data) : text}\n`);
    },
    note(text) {
      clearLive();
      (json ? process.stderr : process.stdout).write(`${text}\n`);
    },
    live(text, data) {
      if (interactive) {
        process.stdout.write(`\r\u001b[2K${text.slice(0, (process.stdout.columns ?? 120) - 1)}`);
        liveShown = true;
        return;
      }
      if (performance.now() - lastLiveMs < liveIntervalMs) return;
      lastLiveMs = performance.now();
      process.stdout.write(`${json ? JSON.stringify(data) : text}\n`);
    },
  };
}

/** Prints a failure for people or scripts; the exit code for it. 2: the caller has to change something; 1: anything else. */
export function reportFailure(error: unknown, json: boolean): number {
  const { stack: _stack, ...plain } = errorToJson(error);
  if (json) process.stdout.write(`${JSON.stringify({ error: plain })}\n`);
  else process.stderr.write(`millrace: ${plain.message}\n  (${plain.code}; see docs/errors.md)\n`);
  if (!(error instanceof MillraceError) && process.env.MILLRACE_LOG_LEVEL === 'debug') console.error(error);
  return error instanceof MillraceError && (error.kind === 'input' || error.kind === 'setup') ? 2 : 1;
}
