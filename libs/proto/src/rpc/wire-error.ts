import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import {
  type ErrorCode,
  type ErrorKind,
  errorCodes,
  errorFromJson,
  errorToJson,
  MillraceError,
} from '@millrace/kernel';

/** Trailing metadata that carries a MillraceError as JSON. */
export const errorKey = 'millrace-error-bin';

const statusOfKind: Readonly<Record<ErrorKind, status>> = {
  retry: status.UNAVAILABLE,
  input: status.INVALID_ARGUMENT,
  setup: status.FAILED_PRECONDITION,
  fenced: status.ABORTED,
  cancelled: status.CANCELLED,
  bug: status.INTERNAL,
};

/** What a code that this build does not know becomes, so that its kind, which callers branch on, is kept. */
const codeOfKind: Readonly<Record<ErrorKind, ErrorCode>> = {
  retry: 'rpc-unavailable',
  input: 'bad-argument',
  setup: 'rpc-refused',
  fenced: 'attempt-fenced',
  cancelled: 'cancelled',
  bug: 'unexpected',
};

// Trailers share the peer's limit for header blocks (8 to 64 KiB), so the text is cut, never the code.
const messageCharsMax = 1500;
const detailsCharsMax = 1500;

/** Any thrown value as the status that ends a call. */
export function toStatus(error: unknown): StatusObject {
  const e = MillraceError.from(error);
  const metadata = new Metadata();
  metadata.set(errorKey, errorToWire(e));
  return { code: statusOfKind[e.kind], details: errorToJson(e).message.slice(0, 200), metadata };
}

/** Any thrown value as bytes, for answers that fail while their stream goes on. At most a few kilobytes. */
export function errorToWire(error: unknown): Buffer {
  const e = MillraceError.from(error);
  const json = errorToJson(e);
  const message = json.message.slice(0, messageCharsMax);
  const details = JSON.stringify(json.details).length > detailsCharsMax ? {} : json.details;
  return Buffer.from(JSON.stringify({ code: json.code, kind: e.kind, message, details }));
}

/** The error that {@link errorToWire} wrote. */
export function errorFromWire(bytes: Uint8Array): MillraceError {
  return parse(Buffer.from(bytes)) ?? new MillraceError('unexpected', 'an error came that cannot be read');
}

/** The status that ended a call as an error: the server's own one, or the transport's failure by a code of ours. */
export function fromStatus(ended: Pick<StatusObject, 'code' | 'details'> & { metadata?: Metadata }): MillraceError {
  const sent = ended.metadata?.get(errorKey)[0];
  if (sent !== undefined) {
    const parsed = parse(Buffer.from(sent));
    if (parsed !== undefined) return parsed;
  }
  const details = { grpcStatus: ended.code };
  const text = ended.details === '' ? (status[ended.code] ?? String(ended.code)) : ended.details;
  return new MillraceError(transportCode(ended.code), text, { details });
}

function parse(bytes: Buffer): MillraceError | undefined {
  try {
    const json = JSON.parse(bytes.toString()) as Parameters<typeof errorFromJson>[0] & { kind: ErrorKind };
    const known = Object.hasOwn(errorCodes, json.code) && errorCodes[json.code].kind === json.kind;
    return errorFromJson(known ? json : { ...json, code: codeOfKind[json.kind] ?? 'unexpected' });
  } catch {
    return undefined; // not written by us: the status alone counts
  }
}

/** A status without our metadata was made by the transport, not by a handler (handlers' errors always carry it). */
function transportCode(code: status): ErrorCode {
  switch (code) {
    case status.DEADLINE_EXCEEDED:
      return 'rpc-deadline';
    case status.RESOURCE_EXHAUSTED:
      return 'rpc-too-large';
    case status.UNIMPLEMENTED:
    case status.UNAUTHENTICATED:
    case status.PERMISSION_DENIED:
      return 'rpc-refused';
    default:
      return 'rpc-unavailable';
  }
}
