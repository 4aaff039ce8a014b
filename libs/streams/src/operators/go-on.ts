import { isPending, type MaybePromise } from '@millrace/kernel';

/** Goes on with the value: at once when it is at hand, later when it is not. */
export function goOn<T>(value: MaybePromise<T>, go: (value: T) => void): void | Promise<void> {
  if (isPending(value)) return value.then(go);
  go(value);
}
