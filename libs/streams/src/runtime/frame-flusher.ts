import type { Clock, Timer } from '@millrace/kernel';
import type { FrameTimer, RemoteOutput } from './remote-output.ts';

/** One timer for all partial frames of a slot: none waits longer than the frame delay. */
export class FrameFlusher implements FrameTimer {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #onError: (error: unknown) => void;
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

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #flush(): void {
    this.#timer = undefined;
    const outputs = this.#begun;
    this.#begun = [];
    try {
      for (const output of outputs) output.flush();
    } catch (error) {
      this.#onError(error);
    }
  }
}
