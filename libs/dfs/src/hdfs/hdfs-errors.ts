import { type ErrorCode, MillraceError } from '@millrace/kernel';
import type { HttpAnswer } from './http-request.ts';

/** What HDFS said instead of an answer: the Java exception's simple name and its message's first line. */
export interface RemoteException {
  readonly name: string;
  readonly message: string;
}

/** The exception in an answer that is no success. */
export function exceptionOf(answer: HttpAnswer): RemoteException {
  const text = new TextDecoder().decode(answer.bytes.subarray(0, 100_000));
  try {
    const { RemoteException: remote } = JSON.parse(text) as {
      RemoteException: { readonly exception: string; readonly message?: string };
    };
    return { name: remote.exception, message: (remote.message ?? '').split('\n')[0] ?? '' };
  } catch {
    return { name: `status ${answer.status}`, message: text.slice(0, 100) };
  }
}

const meanings: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  AccessControlException: ['dfs-denied', 'give the user read, write and execute rights on the directory'],
  SecurityException: ['dfs-denied', 'the name node wants a log-in (Kerberos), which Millrace does not have'],
  AuthorizationException: ['dfs-denied', 'the user may not do this'],
  InvalidToken: ['dfs-denied', 'the name node wants a log-in (Kerberos), which Millrace does not have'],
  DSQuotaExceededException: ['dfs-no-space', 'raise the space quota of the directory'],
  NSQuotaExceededException: ['dfs-no-space', 'raise the name quota of the directory'],
  QuotaByStorageTypeExceededException: ['dfs-no-space', 'raise the quota of the directory'],
  ParentNotDirectoryException: ['dfs-path-taken', 'a file and a directory are in each other’s way'],
  FileAlreadyExistsException: ['dfs-path-taken', 'a file and a directory are in each other’s way'],
  PathComponentTooLongException: ['dfs-bad-path', 'the name node does not take names this long'],
  InvalidPathException: ['dfs-bad-path', 'HDFS does not take this name'],
  UnsupportedOperationException: ['dfs-unsupported', 'this HDFS lacks an operation; use version 3 or later'],
  RetriableException: ['dfs-throttled', 'the name node is busy; this may pass'],
};

export function remoteError(answer: HttpAnswer, operation: string, place: string): MillraceError {
  const { name, message } = exceptionOf(answer);
  const [code, mend] = meaning(answer.status, name, message);
  return new MillraceError(code, `cannot ${operation} ${place}: ${name}: ${message.slice(0, 300)}; ${mend}`, {
    details: { path: place, operation, answer: name, status: answer.status },
  });
}

function meaning(status: number, name: string, message: string): readonly [ErrorCode, string] {
  if (status === 503 || status === 429) return ['dfs-throttled', 'this may pass'];
  const known = meanings[name];
  if (known !== undefined) return known;
  if (message.includes('must both be directories')) {
    return ['dfs-path-taken', 'a file and a directory are in each other’s way'];
  }
  return ['dfs-unavailable', 'this may pass'];
}

/** No answer: the connection failed or broke. */
export function connectionError(error: unknown, operation: string, place: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new MillraceError('dfs-unavailable', `cannot ${operation} ${place}: ${why}; this may pass`, {
    details: { path: place, operation },
    cause: error,
  });
}
