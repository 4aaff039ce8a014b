import { MillraceError } from '@millrace/kernel';
import { findErrorBy } from '@platformatic/kafka';

/** Does one of the answers in this error carry this name of Kafka's protocol, such as `PRODUCER_FENCED`? */
export function hasAnswer(error: unknown, ...names: readonly string[]): boolean {
  return names.some((name) => findErrorBy(error as Error, 'apiId', name) !== null);
}

const lostProducer = [
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_PRODUCER_ID_MAPPING',
  'INVALID_TXN_STATE',
  'TRANSACTIONAL_ID_NOT_FOUND',
  'UNKNOWN_PRODUCER_ID',
] as const;

/** The broker has ended this transaction, or given its name to somebody else. */
export function isLostTransaction(error: unknown): boolean {
  return hasAnswer(error, ...lostProducer);
}

const staleAnswers = [
  'NOT_LEADER_OR_FOLLOWER',
  'LEADER_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'UNKNOWN_TOPIC_ID',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'COORDINATOR_LOAD_IN_PROGRESS',
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR',
] as const;

/** May the same request succeed later, perhaps at another broker? */
export function isTransient(error: unknown): boolean {
  if (error instanceof MillraceError) return error.kind === 'retry';
  if (hasAnswer(error, ...staleAnswers)) return true;
  const failure = error as Error;
  return (
    findErrorBy(failure, 'canRetry', true) !== null ||
    findErrorBy(failure, 'code', 'PLT_KFK_TIMEOUT') !== null ||
    findErrorBy(failure, 'code', 'PLT_KFK_NETWORK') !== null
  );
}

/** A fault of the client or an answer of the broker, as the caller can act on it. */
export function kafkaError(error: unknown, doing: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = isTransient(error) ? 'kafka-unavailable' : 'kafka-refused';
  return new MillraceError(code, `Kafka: ${doing}: ${wordsOf(error)}`, { cause: error });
}

/** What the innermost errors say: the client wraps each in "an error occurred". */
function wordsOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return [...new Set(error.errors.map(wordsOf))].slice(0, 3).join('; ');
  }
  if (!(error instanceof Error)) return String(error);
  const id = (error as { readonly apiId?: unknown }).apiId;
  return typeof id === 'string' ? `${id} (${error.message})` : error.message;
}
