import { ActivityFailure, ApplicationFailure, TimeoutFailure } from '@temporalio/workflow';

/** What a workflow may branch on: the code, its kind, and whether repeating can help. */
export interface Cause {
  readonly code: string;
  readonly kind: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The failure that started a chain of workflow and activity failures, in words. */
export function causeOf(error: unknown): Cause {
  let inner = error;
  for (let depth = 0; depth < 20; depth++) {
    if (inner instanceof ApplicationFailure) {
      const json = inner.details?.[0] as Cause | undefined;
      if (json?.code !== undefined) return { ...json, message: inner.message, details: json.details ?? {} };
    }
    if (!(inner instanceof Error && inner.cause instanceof Error)) break;
    inner = inner.cause;
  }
  if (inner instanceof TimeoutFailure) {
    const step = error instanceof ActivityFailure ? ` from ${error.activityType}` : '';
    return { code: 'timeout', kind: 'retry', message: `No answer in time${step} (${inner.timeoutType})`, details: {} };
  }
  const message = inner instanceof Error ? inner.message : String(inner);
  return { code: 'unexpected', kind: 'bug', message, details: {} };
}

/** A failure that ends this workflow with the same code, kind and words. */
export function endWith(cause: Cause, message = cause.message): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: cause.code,
    nonRetryable: true,
    details: [{ code: cause.code, kind: cause.kind, message, details: cause.details }],
  });
}
