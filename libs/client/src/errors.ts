import { MillraceError } from '@millrace/kernel';
import { isGrpcServiceError, ServiceError, WorkflowNotFoundError } from '@temporalio/client';

/** gRPC codes of a service that is away or does not answer in time. */
const away = new Set([1, 4, 14]);

/** What a call to Temporal threw, as an error of the client's contract. */
export function fromTemporal(
  error: unknown,
  context: { readonly id?: string; readonly address: string },
): MillraceError {
  const { id, address } = context;
  if (error instanceof WorkflowNotFoundError) {
    return new MillraceError('job-not-found', `There is no job "${id}", or it is over.`, {
      cause: error,
      details: { id: id ?? null },
    });
  }
  const cause = error instanceof ServiceError ? error.cause : error;
  if (isGrpcServiceError(cause) && away.has(cause.code)) {
    return new MillraceError(
      'temporal-unreachable',
      `The Temporal service at ${address} (MILLRACE_TEMPORAL_ADDRESS) does not answer: ${cause.details}`,
      { cause: error, details: { address } },
    );
  }
  return MillraceError.from(error);
}
