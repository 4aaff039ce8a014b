import { MillraceError } from './errors.ts';

/** Throws `invariant-broken` unless `condition` holds. For what must be true in a correct Millrace, never for bad input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new MillraceError('invariant-broken', message);
}

/** Marks a branch that the types say cannot be reached. */
export function unreachable(value: never): never {
  throw new MillraceError('invariant-broken', `unreachable value: ${String(value)}`);
}
