import { type ErrorCode, MillraceError } from '@millrace/kernel';

interface Mapped {
  readonly code: ErrorCode;
  readonly mend: string;
}

const passing: Mapped = { code: 'dfs-unavailable', mend: 'this may pass' };
const tooManyFiles: Mapped = { code: 'dfs-unavailable', mend: 'too many open files; raise the limit (ulimit -n)' };
const full: Mapped = { code: 'dfs-no-space', mend: 'free space there or point the setting `dfs` at a larger disk' };
const denied: Mapped = { code: 'dfs-denied', mend: 'give the user that runs Millrace read and write access there' };
const taken: Mapped = { code: 'dfs-path-taken', mend: 'a file and a directory are in each other’s way' };

/** What each error number of the operating system means for the caller. What is not listed may pass. */
const mapping: Readonly<Record<string, Mapped>> = {
  ENOSPC: full,
  EDQUOT: { code: 'dfs-no-space', mend: 'the disk quota is used up; raise it or free space there' },
  EFBIG: { code: 'dfs-no-space', mend: 'the file would be larger than the file system or the process limit allows' },
  EACCES: denied,
  EPERM: denied,
  EROFS: { code: 'dfs-denied', mend: 'the file system is mounted read-only; remount it for writing' },
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
  EISDIR: taken,
  ENOTDIR: taken,
  EEXIST: taken,
  ENAMETOOLONG: { code: 'dfs-bad-path', mend: 'the file system does not take names this long' },
  ELOOP: { code: 'dfs-unsupported', mend: 'symbolic links go in a circle there' },
  EXDEV: { code: 'dfs-unsupported', mend: 'a directory below the root is another file system; use one for the root' },
  ENOTSUP: { code: 'dfs-unsupported', mend: 'the file system has no hard links; use another for the root' },
  ENOSYS: { code: 'dfs-unsupported', mend: 'the file system has no hard links; use another for the root' },
  EMLINK: { code: 'dfs-unsupported', mend: 'the file system has no hard links; use another for the root' },
};

/** A failure of the operating system as the port names it: the kind, the path and what to do. */
export function localError(error: unknown, operation: string, absolutePath: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const errno = errnoOf(error) ?? 'unknown';
  const { code, mend } = mapping[errno] ?? passing;
  return new MillraceError(code, `cannot ${operation} ${absolutePath}: ${errno}; ${mend}`, {
    details: { path: absolutePath, operation, errno },
    cause: error,
  });
}

/** `ENOENT` and the like; undefined for what is no system error. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
