import type { Clock, Timer } from '@millrace/kernel';
import type { OutputTimer, RemoteOutput } from './remote-output.ts';

/** The timers of a slot: one for all its partial frames, so that none waits longer than the frame delay; and others. */
export class SlotTimers implements OutputTimer {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #others = new Set<Timer>();
  #begun: RemoteOutput[] = [];
  #timer: Timer | undefined;
  #closed = false;

  constructor(clock: Clock, delayMs: number, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.#onError = onError;
  }

  begun(output: RemoteOutput): void {
    if (this.#closed) return;
    // Frames that fill at once come here too; without the check the list would grow until the timer fires.
    if (!this.#begun.includes(output)) this.#begun.push(output);
    this.#timer ??= this.#clock.schedule(this.#delayMs, () => this.#flush());
  }

  after(delayMs: number, callback: () => void): Timer {
    if (this.#closed) return { cancel: () => undefined };
    const timer = this.#clock.schedule(delayMs, () => {
      this.#others.delete(timer);
      this.#guarded(callback);
    });
    this.#others.add(timer);
    return {
      cancel: () => {
        this.#others.delete(timer);
        timer.cancel();
      },
    };
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const timer of this.#others) timer.cancel();
    this.#others.clear();
  }

  #flush(): void {
    this.#timer = undefined;
    const outputs = this.#begun;
    this.#begun = [];
    this.#guarded(() => {
      for (const output of outputs) output.flush();
    });
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onError(error);
    }
  }
}
