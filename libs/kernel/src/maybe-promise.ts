/**
 * The value itself when it is at hand, a promise only when it is not.
 * The hot path never allocates a promise for work that can finish at once (DESIGN §5).
 */
export type MaybePromise<T> = T | Promise<T>;

/** True when `value` still has to be awaited. Only real promises travel inside Millrace, so one check is enough. */
export function isPending<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise;
}
