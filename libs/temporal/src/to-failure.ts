import { errorToJson, MillraceError } from '@millrace/kernel';
import { ApplicationFailure } from '@temporalio/common';

/** A failure of an activity as Temporal carries it: the code as type; code, kind and details as JSON. */
export function toFailure(error: unknown): ApplicationFailure {
  const e = MillraceError.from(error);
  const { code, message, details } = errorToJson(e);
  return ApplicationFailure.create({
    message,
    type: code,
    nonRetryable: e.kind !== 'retry' && code !== 'unexpected',
    details: [{ code, kind: e.kind, message, details }],
    cause: e,
  });
}
