import type { Epoch } from './epoch.ts';
import { WorkQueue } from './work.ts';

/**
 * A busy key: its record is in flight, others wait. Lanes are pooled together with the two callbacks that settle their
 * record, so an asynchronous record costs one `then` and no closure. Reuse is safe because a lane has at most one
 * unsettled promise, and goes back to the pool only from that promise's callback.
 */
export class Lane<K, R> {
  key: K;
  /** The epoch of the record in flight. */
  epoch: Epoch;
  /** Derived work goes before waiting input. */
  readonly derived = new WorkQueue<K, R>();
  readonly waiting = new WorkQueue<K, R>();
  readonly onDone: () => void;
  readonly onFail: (error: unknown) => void;

  constructor(
    key: K,
    epoch: Epoch,
    done: (lane: Lane<K, R>) => void,
    failed: (lane: Lane<K, R>, error: unknown) => void,
  ) {
    this.key = key;
    this.epoch = epoch;
    this.onDone = () => done(this);
    this.onFail = (error) => failed(this, error);
  }
}
