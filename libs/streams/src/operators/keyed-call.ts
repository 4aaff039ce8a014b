import { MillraceError } from '@millrace/kernel';
import type { AccessScope, KeyValue, StateEntry, StateFacade, StateShape } from '@millrace/state';
import type { LogicContext, Timers } from '../api/process.ts';
import type { SideTag } from '../api/side-tag.ts';
import type { KeyedOperator } from './keyed-operator.ts';

/**
 * One record or timer on its way through a keyed operator: the unit that the controller orders, the context that the
 * handler gets, and the scope that its state accesses are counted in. Sealed when the handler settles; what a
 * handler did not await is found then, and what it does later is refused.
 */
export class KeyedCall implements LogicContext, AccessScope, Timers {
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  readonly timestampMs: number;
  readonly watermarkMs: number;
  readonly value: unknown;
  /** The input that the record came from; -1 for a timer. */
  readonly input: number;
  open = true;
  pendingAccesses = 0;
  entry: StateEntry | undefined;
  readonly #host: KeyedOperator;
  #facade: StateFacade<StateShape> | undefined;

  constructor(
    host: KeyedOperator,
    key: unknown,
    namespace: KeyValue | undefined,
    timestampMs: number,
    watermarkMs: number,
    value: unknown,
    input: number,
  ) {
    this.#host = host;
    this.key = key;
    this.namespace = namespace;
    this.timestampMs = timestampMs;
    this.watermarkMs = watermarkMs;
    this.value = value;
    this.input = input;
  }

  get state(): StateFacade<StateShape> {
    this.#facade ??= this.#host.facade(this);
    return this.#facade;
  }

  get timers(): Timers {
    return this;
  }

  emit(value: unknown, timestampMs = this.timestampMs): void {
    if (!this.open) throw this.#sealed('emit');
    this.#host.emit(value, timestampMs, undefined);
  }

  side<X>(tag: SideTag<X>, value: X): void {
    if (!this.open) throw this.#sealed('side');
    this.#host.emit(value, this.timestampMs, tag.name);
  }

  at(timeMs: number): void {
    if (!this.open) throw this.#sealed('timers.at');
    this.#host.registerTimer(this, timeMs);
  }

  delete(timeMs: number): void {
    if (!this.open) throw this.#sealed('timers.delete');
    this.#host.deleteTimer(this, timeMs);
  }

  enter(): void {
    this.pendingAccesses++;
  }

  leave(): void {
    this.pendingAccesses--;
  }

  /** The handler has settled. */
  seal(): void {
    this.open = false;
    if (this.pendingAccesses === 0) return;
    throw new MillraceError(
      'aec-unawaited-access',
      `the handler of ${this.#host.uid} ended while ${this.pendingAccesses} of its state accesses were under way; await each of them`,
      { details: { operator: this.#host.uid } },
    );
  }

  #sealed(what: string): MillraceError {
    return new MillraceError(
      'aec-access-after-finish',
      `${what} was called after the handler of ${this.#host.uid} had ended; await everything that the handler starts`,
      { details: { operator: this.#host.uid } },
    );
  }
}
