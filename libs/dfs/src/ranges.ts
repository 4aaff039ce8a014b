import { MillraceError } from '@millrace/kernel';

/** Refuses what is no byte range. */
export function checkRange(path: string, offset: number, length: number): void {
  if (Number.isSafeInteger(offset) && offset >= 0 && Number.isSafeInteger(length) && length >= 0) return;
  throw new MillraceError('bad-argument', `offset ${offset} and length ${length} are no byte range of ${path}`);
}

/** Rejection of a read of a file that does not exist. */
export function notFound(uri: string, path: string): MillraceError {
  return new MillraceError('dfs-not-found', `no file ${path} in ${uri}`, { details: { uri, path } });
}
