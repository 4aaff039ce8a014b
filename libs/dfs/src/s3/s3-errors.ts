import { type ErrorCode, MillraceError } from '@millrace/kernel';

interface Answer {
  /** The service's own word, such as `SlowDown`. */
  readonly name: string;
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
}

/** What the service or the SDK said. */
export function answerOf(error: unknown): Answer {
  if (!(error instanceof Error)) return { name: String(error), status: undefined };
  const metadata = '$metadata' in error ? (error.$metadata as { readonly httpStatusCode?: number }) : undefined;
  // A 200 with an error in its body, as CompleteMultipartUpload gives it, has its meaning in the name.
  return { name: error.name, status: metadata?.httpStatusCode };
}

const throttled = new Set(['SlowDown', 'Throttling', 'ThrottlingException', 'TooManyRequests', 'RequestLimitExceeded']);
const denied: Readonly<Record<string, string>> = {
  AccessDenied: 'give these credentials GetObject, PutObject, DeleteObject, ListBucket and AbortMultipartUpload there',
  InvalidAccessKeyId: 'the service does not know the access key',
  SignatureDoesNotMatch: 'the secret key is another one, or a proxy changes requests',
  RequestTimeTooSkewed: 'set the clock of this machine',
  CredentialsProviderError: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role',
  TokenProviderError: 'log in again',
  InvalidToken: 'the session token is not valid',
};
const setUp: Readonly<Record<string, string>> = {
  NoSuchBucket: 'make the bucket, or name another one',
  PermanentRedirect: 'the bucket is in another region; set region=',
  AuthorizationHeaderMalformed: 'the bucket is in another region; set region=',
  InvalidBucketName: 'name a bucket that can be one',
};

/** A failure of a request as the port names it. What is not known may pass. */
export function s3Error(error: unknown, operation: string, place: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const { name, status } = answerOf(error);
  const [code, mend] = meaning(name, status);
  const message = error instanceof Error && error.message !== name ? `${name}, ${error.message}` : name;
  return new MillraceError(code, `cannot ${operation} ${place}: ${message.slice(0, 300)}; ${mend}`, {
    details: { path: place, operation, answer: name, ...(status === undefined ? {} : { status }) },
    cause: error,
  });
}

function meaning(name: string, status: number | undefined): [ErrorCode, string] {
  if (status === 503 || status === 429 || throttled.has(name)) return ['dfs-throttled', 'this may pass'];
  const refused = denied[name];
  if (refused !== undefined) return ['dfs-denied', refused];
  const wrong = setUp[name];
  if (wrong !== undefined) return ['dfs-unsupported', wrong];
  if (name === 'NotImplemented' || status === 501) return ['dfs-unsupported', 'the service lacks this operation'];
  if (name === 'KeyTooLongError') return ['dfs-bad-path', 'use a shorter prefix in the URI'];
  if (name === 'QuotaExceeded' || name === 'XMinioStorageFull' || status === 507) {
    return ['dfs-no-space', 'free space there or raise the quota'];
  }
  if (status === 403 || status === 401) return ['dfs-denied', 'look at the policies of the bucket and of the role'];
  return ['dfs-unavailable', 'this may pass'];
}
