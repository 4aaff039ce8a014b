import { type ErrorCode, errorCodes } from './error-codes.ts';

/**
 * What the caller can do about it; the only thing code may branch on besides the code itself.
 * - `retry`: the same call may succeed later.
 * - `input`: the caller's data or arguments are wrong; repeat only after changing them.
 * - `setup`: a setting, a tool or a permission is missing; the operator has to act.
 * - `fenced`: a newer generation owns this; stop, change nothing.
 * - `cancelled`: asked to stop.
 * - `bug`: an invariant of Millrace or of the job's own code does not hold.
 */
export type ErrorKind = 'retry' | 'input' | 'setup' | 'fenced' | 'cancelled' | 'bug';

export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

/** The only error type that crosses a boundary. `code` has an entry in `docs/errors.md`. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: { details?: ErrorDetails; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.kind = errorCodes[code].kind;
    this.details = options.details ?? {};
  }

  /** Any thrown value as a MillraceError: unchanged if it is one, else wrapped as `code` (default: an unexpected fault). */
  static from(error: unknown, code: ErrorCode = 'unexpected'): MillraceError {
    if (error instanceof MillraceError) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new MillraceError(code, message, { cause: error });
  }
}

export function isKind(error: unknown, kind: ErrorKind): error is MillraceError {
  return error instanceof MillraceError && error.kind === kind;
}

/** Errors as plain JSON, for worker threads, gRPC details and Temporal failures. */
export interface ErrorJson {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
  readonly stack?: string;
}

export function errorToJson(error: unknown): ErrorJson {
  const e = MillraceError.from(error);
  const cause = e.cause instanceof Error && e.cause.message !== e.message ? ` (cause: ${e.cause.message})` : '';
  return {
    code: e.code,
    message: e.message + cause,
    details: e.details,
    ...(e.stack === undefined ? {} : { stack: e.stack }),
  };
}

export function errorFromJson(json: ErrorJson): MillraceError {
  const known = Object.hasOwn(errorCodes, json.code) ? json.code : 'unexpected';
  const error = new MillraceError(known, json.message, { details: json.details });
  if (json.stack !== undefined) error.stack = json.stack;
  return error;
}
