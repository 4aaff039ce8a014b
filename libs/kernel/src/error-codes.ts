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
  'rpc-unavailable': entry(
    'retry',
    'The other process cannot be reached, or the connection broke.',
    'Millrace tries again. If it lasts, check that the process runs and that the address in the message can be reached.',
  ),
  'rpc-deadline': entry(
    'retry',
    'The other process did not answer in time.',
    'Millrace tries again. If it lasts, look at the load of the process named in the trace.',
  ),
  'rpc-refused': entry(
    'setup',
    'The other process does not serve this call or does not allow it.',
    'Check that all processes run the same version and that the address belongs to Millrace.',
  ),
  'rpc-too-large': entry(
    'setup',
    'A message is larger than the limit of the connection.',
    'Make the records smaller; one record must fit into one message.',
  ),
  'attempt-fenced': entry(
    'fenced',
    'A newer attempt of the job has taken over.',
    'Nothing to do: the older attempt stops.',
  ),
  'attempt-unknown': entry(
    'retry',
    'The runner does not host this attempt, or not yet.',
    'Millrace tries again until the attempt is deployed or replaced.',
  ),
  'runner-mismatch': entry(
    'setup',
    'A call reached another runner than the one it names: the address is used by another process now.',
    'Millrace restarts the attempt. If it lasts, give each runner an address of its own.',
  ),
  'exchange-broken': entry(
    'retry',
    'The stream of records from another runner broke.',
    'The attempt restarts from the last checkpoint. Look in the log of the runner named in the message.',
  ),
  'exchange-overrun': entry(
    'bug',
    'A slot sent more than the credit that its receiver had granted.',
    'The attempt was stopped before memory grew. Report it with the log.',
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
  'job-module': entry(
    'input',
    'A module does not export a job as its default export.',
    'Write `export default job(name, …)` in the module that the message names.',
  ),
  'job-options': entry(
    'input',
    "An option of the job is missing, unknown or has a value that the job's schema refuses.",
    'The message names the path of the option and what is allowed. Nothing was started.',
  ),
  'job-graph': entry(
    'input',
    'The graph that the job builds cannot run.',
    'The message names the operator and what is wrong with it, for example a stream that leads to no sink. Nothing was started.',
  ),
  'source-input': entry(
    'input',
    'An input of a source is missing, cannot be read or holds a record that cannot be decoded.',
    'The message names the file and the place in it. Mend the input, then start again from the last checkpoint.',
  ),
  'source-position': entry(
    'input',
    'A position in the restored checkpoint does not fit the input any more.',
    'Input files must not shrink or disappear while a job reads them. Put the file back.',
  ),
  'sink-directory-used': entry(
    'input',
    'The directory of a file sink already holds output of an earlier run.',
    'Choose another directory, move the files away, or set `overwrite: true`, which removes the files of this sink only.',
  ),
  'sink-output-missing': entry(
    'input',
    'A file that a restored checkpoint wrote is neither pending nor published.',
    'Put the published file back under the name in the message and restart; an empty file is enough if its records were consumed.',
  ),
  'sink-io': entry(
    'retry',
    'Writing or publishing an output file failed.',
    'Read the cause: a full disk or a missing permission. The job restarts from its last checkpoint.',
  ),
  'stack-running': entry(
    'setup',
    'An embedded stack already runs on this data directory.',
    'Use it, stop it, or choose another directory with --data.',
  ),
  'process-start-failed': entry(
    'setup',
    'A process of the embedded stack did not become ready.',
    'The message names its log file.',
  ),
  'no-cluster': entry(
    'setup',
    'A command found no cluster to talk to.',
    'Start one with `millrace dev`, or set MILLRACE_TEMPORAL_ADDRESS.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCodes;
