import type { StateEntry } from '@millrace/state';
import type { Timers } from '../api/process.ts';
import type { KeyedCall } from './keyed-call.ts';
import type { KeyedOperator, TimeDomain } from './keyed-operator.ts';

/** Timers of one entry and time domain, while its call is open. */
export class PaneTimers implements Timers {
  readonly #host: KeyedOperator;
  readonly #call: KeyedCall;
  readonly #entry: StateEntry;
  readonly #domain: TimeDomain;

  constructor(host: KeyedOperator, call: KeyedCall, entry: StateEntry, domain: TimeDomain) {
    this.#host = host;
    this.#call = call;
    this.#entry = entry;
    this.#domain = domain;
  }

  at(timeMs: number): void {
    this.#call.checkOpen('timers.at');
    this.#host.registerTimer(this.#entry, this.#domain, timeMs);
  }

  delete(timeMs: number): void {
    this.#call.checkOpen('timers.delete');
    this.#host.deleteTimer(this.#entry, this.#domain, timeMs);
  }
}
