import { errorCodes } from '@millrace/kernel';

const actions = {
  retry: 'retry: the same call may succeed later',
  input: 'fix the input',
  setup: 'fix the set-up',
  fenced: 'stop: a newer generation owns this',
  cancelled: 'nothing: it was asked for',
  bug: 'report it, or mend your handler',
} as const;

/** The text of `docs/errors.md`. */
export function errorDocs(): string {
  const lines = [
    '# Errors',
    '',
    'Every error of Millrace has a code. `kind` says what a caller can do about it. This page is generated from',
    '`libs/kernel/src/error-codes.ts` by `npm run docs`; a test compares the two.',
    '',
  ];
  for (const [code, entry] of Object.entries(errorCodes)) {
    lines.push(
      `## \`${code}\``,
      '',
      `Kind: ${entry.kind} (${actions[entry.kind]}).`,
      '',
      entry.meaning,
      '',
      entry.mend,
      '',
    );
  }
  return lines.join('\n');
}
