import { isPending, type MaybePromise, MillraceError } from '@millrace/kernel';

/**
 * Guards the state accesses of one record (promise A6): all of them lie within its handler. One scope per record, never
 * reused: a late access must not be taken for one of another record.
 *
 * - An access after the handler has settled throws `aec-access-after-finish`.
 * - A handler that settles while an access is pending fails with `aec-unawaited-access`: what the access would have done
 *   could come after the next record of the key, or after a snapshot.
 * - A failed access fails the record even when its handler caught the error: nobody knows what was applied.
 */
export class RecordScope {
  readonly #name: string;
  #open = true;
  #pending = 0;
  #oldest = '';
  #failed = false;
  #failure: unknown;

  /** `name` says in errors whose accesses these are: an operator and a key. */
  constructor(name: string) {
    this.#name = name;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Before each access. `access` names it in errors, such as `count.get`. */
  enter(access: string): void {
    if (this.#open) return;
    throw new MillraceError(
      'aec-access-after-finish',
      `${this.#name}: ${access} came after the record had finished; await everything that the handler starts, and use no state handle outside its record`,
    );
  }

  /** After each access: returns `result` itself. One that is at hand costs nothing. */
  track<T>(access: string, result: MaybePromise<T>): MaybePromise<T> {
    if (!isPending(result)) return result;
    if (this.#pending++ === 0) this.#oldest = access;
    // Registered before the handler can await the promise, hence counted down before the handler goes on.
    result.then(this.#answered, this.#rejected);
    return result;
  }

  /** Seals the scope when the handler has settled: returns or rejects as it did, unless an access is at fault. */
  seal(result: void | Promise<void>): void | Promise<void> {
    if (isPending(result)) return result.then(this.#finish, this.#abandon);
    return this.#finish();
  }

  /** The handler threw before it returned; its error is the one to report. */
  close(): void {
    this.#open = false;
  }

  readonly #answered = (): void => {
    this.#pending--;
  };

  readonly #rejected = (error: unknown): void => {
    this.#pending--;
    if (this.#failed) return;
    this.#failed = true;
    this.#failure = error;
  };

  readonly #finish = (): void => {
    this.#open = false;
    if (this.#failed) throw this.#failure;
    if (this.#pending === 0) return;
    throw new MillraceError(
      'aec-unawaited-access',
      `${this.#name}: the handler finished while ${this.#pending} state ${this.#pending === 1 ? 'access was' : 'accesses were'} pending (the first: ${this.#oldest}); put an await before each access of state, and return or await the promises of functions that access it`,
      { details: { pending: this.#pending, access: this.#oldest } },
    );
  };

  readonly #abandon = (error: unknown): never => {
    this.#open = false;
    throw error;
  };
}
