import { MillraceError } from '@millrace/kernel';

/** Bytes of an immutable file are not what was written. */
export function corrupt(file: string, what: string): MillraceError {
  return new MillraceError('lsm-corrupt', `file ${file} is damaged: ${what}`, { details: { file, what } });
}
