import type { ErrorKind } from './errors.ts';

interface ErrorEntry {
  readonly kind: ErrorKind;
  /** One sentence: what happened. */
  readonly meaning: string;
  /** One or two sentences: what the reader should do. */
  readonly mend: string;
}

function entry(kind: ErrorKind, meaning: string, mend: string): ErrorEntry {
  return { kind, meaning, mend };
}

/** Every error code. `docs/errors.md` is generated from this list (`npm run docs`) and a test compares the two. */
export const errorCodes = {
  unexpected: entry(
    'bug',
    'A fault that no code of Millrace expected.',
    'Read the cause in the log. If it comes from your handler, mend the handler; otherwise report it.',
  ),
  'invariant-broken': entry(
    'bug',
    'An assertion inside Millrace does not hold.',
    'Nothing was written after the check. Report it with the log.',
  ),
  'bad-argument': entry(
    'input',
    'A value given to an API is not allowed.',
    'The message names the argument and what is allowed.',
  ),
  'bad-setting': entry(
    'setup',
    'A setting has a value that cannot be used.',
    'The message names the setting, its value and what is allowed.',
  ),
  cancelled: entry('cancelled', 'The work was asked to stop.', 'Nothing to do.'),
  'temporal-not-found': entry(
    'setup',
    'No Temporal server could be obtained.',
    'The message lists every way that was tried. Put the Temporal CLI on PATH or set MILLRACE_TEMPORAL_ADDRESS.',
  ),
  'temporal-start-failed': entry(
    'setup',
    'The embedded Temporal server did not come up.',
    'The message ends with what it logged. Often its data directory is damaged or in use: choose another with --data.',
  ),
  'port-in-use': entry(
    'setup',
    'A port is taken by another program.',
    'Stop that program or choose another port; the message names the option.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCodes;
