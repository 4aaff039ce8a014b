import { MillraceError } from '@millrace/kernel';

/** The error of a codec that is given what it cannot write. */
export function refuse(codec: string, value: unknown): MillraceError {
  let shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  if (shown.length > 60) shown = `${shown.slice(0, 60)}…`;
  return new MillraceError('state-bad-value', `${codec} cannot write ${shown} (${typeof value})`, {
    details: { codec },
  });
}
