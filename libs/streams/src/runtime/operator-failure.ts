import { MillraceError } from '@millrace/kernel';

/**
 * A fault in an operator as a MillraceError that names the operator and subtask. An error of Millrace keeps its code
 * (what to do about it stays known); anything else becomes `operator-failed`.
 */
export function operatorFailure(error: unknown, place: { operator: string; subtask: number }): MillraceError {
  if (error instanceof MillraceError && error.details.operator !== undefined) return error;
  const cause = MillraceError.from(error, 'operator-failed');
  return new MillraceError(cause.code, `operator '${place.operator}', subtask ${place.subtask}: ${cause.message}`, {
    details: { ...cause.details, operator: place.operator, subtask: place.subtask },
    cause: error,
  });
}
