import { isPending, type MaybePromise } from '@millrace/kernel';

/** Goes on with the value: at once when it is at hand, later when it is not. */
export function goOn<T>(value: MaybePromise<T>, go: (value: T) => void | Promise<void>): void | Promise<void> {
  return isPending(value) ? value.then(go) : go(value);
}

/** As {@link goOn}, with a result. */
export function andThen<T, U>(value: MaybePromise<T>, go: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPending(value) ? value.then(go) : go(value);
}
