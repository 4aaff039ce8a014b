import { ApplicationFailure, TimeoutFailure } from '@temporalio/workflow';

/** What a workflow may branch on: the code, its kind, and whether repeating can help. */
export interface Cause {
  readonly code: string;
  readonly kind: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The innermost failure of a chain of workflow and activity failures, in words. */
export function causeOf(error: unknown): Cause {
  let inner = error;
  for (let depth = 0; depth < 20 && inner instanceof Error && inner.cause instanceof Error; depth++)
    inner = inner.cause;
  if (inner instanceof ApplicationFailure) {
    const json = (inner.details?.[0] ?? {}) as { kind?: string; details?: Record<string, unknown> };
    return {
      code: inner.type ?? 'unexpected',
      kind: json.kind ?? 'bug',
      message: inner.message,
      details: json.details ?? {},
    };
  }
  if (inner instanceof TimeoutFailure) {
    const step = error instanceof Error && 'activityType' in error ? ` (${String(error.activityType)})` : '';
    return { code: 'timeout', kind: 'retry', message: `No answer in time: ${inner.timeoutType}${step}`, details: {} };
  }
  return {
    code: 'unexpected',
    kind: 'bug',
    message: inner instanceof Error ? inner.message : String(inner),
    details: {},
  };
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
