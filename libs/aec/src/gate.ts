/**
 * What someone waits at. A rejection that nobody awaits is no unhandled one: the failure has its owner (`onFailure`, and
 * every later call of the controller throws it).
 */
export class Gate {
  readonly promise: Promise<void>;
  readonly #resolve: () => void;
  readonly reject: (error: unknown) => void;

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined);
    this.promise = promise;
    this.#resolve = resolve;
    this.reject = reject;
  }

  /** Lets all pass. Returns what stands here from now on: no gate. */
  open(): undefined {
    this.#resolve();
    return undefined;
  }
}
