import type { KeyValue, StateEntry, StateFacade, StateShape } from '@millrace/state';
import type { LogicPane, Timers } from '../api/process.ts';
import type { KeyedCall } from './keyed-call.ts';
import type { KeyedOperator } from './keyed-operator.ts';
import { PaneTimers } from './pane-timers.ts';

/** State and timers of the call's key in another namespace. */
export class KeyedPane implements LogicPane {
  readonly state: StateFacade<StateShape>;
  readonly #host: KeyedOperator;
  readonly #call: KeyedCall;
  readonly #entry: StateEntry;

  constructor(host: KeyedOperator, call: KeyedCall, entry: StateEntry) {
    this.#host = host;
    this.#call = call;
    this.#entry = entry;
    this.state = host.facade(entry, call);
  }

  get namespace(): KeyValue | undefined {
    return this.#entry.namespace;
  }

  get timers(): Timers {
    return new PaneTimers(this.#host, this.#call, this.#entry, 'event');
  }

  get processingTimers(): Timers {
    return new PaneTimers(this.#host, this.#call, this.#entry, 'processing');
  }
}
