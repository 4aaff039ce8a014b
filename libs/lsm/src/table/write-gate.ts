import type { Clock, MaybePromise, MillraceError, Timer } from '@millrace/kernel';

/** `stop`: wait for progress. `slow`: wait a little, or for progress. */
export type Pressure = 'none' | 'slow' | 'stop';

export interface WriteGateOptions {
  readonly clock: Clock;
  readonly slowDownMs: number;
  readonly pressure: () => Pressure;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: MillraceError) => void;
  readonly timer: Timer | undefined;
}

/** Where writers wait. Nobody waits for ever: progress lets them on, and failure and closing reject them. */
export class WriteGate {
  readonly #options: WriteGateOptions;
  readonly #waiters = new Set<Waiter>();

  constructor(options: WriteGateOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  pass(): MaybePromise<void> {
    const pressure = this.#options.pressure();
    if (pressure === 'none') return undefined;
    return new Promise((resolve, reject) => {
      const { clock, slowDownMs } = this.#options;
      const timer = pressure === 'slow' ? clock.schedule(slowDownMs, () => this.#leave(waiter)) : undefined;
      const waiter: Waiter = { resolve, reject, timer };
      this.#waiters.add(waiter);
    });
  }

  /** Something was flushed or compacted. */
  progress(): void {
    if (this.#options.pressure() === 'stop') return;
    for (const waiter of this.#waiters) this.#leave(waiter);
  }

  fail(error: MillraceError): void {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      waiter.timer?.cancel();
      waiter.reject(error);
    }
  }

  #leave(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    waiter.timer?.cancel();
    waiter.resolve();
  }
}
