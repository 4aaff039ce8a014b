/**
 * The records between two watermarks. `open`: takes input. `closed`: its watermark has arrived. `advancing`: its
 * timers are firing. `finished`: the watermark has left.
 */
export type EpochStage = 'open' | 'closed' | 'advancing' | 'finished';

/**
 * Belongs to the controller. Handlers get the epoch of their record and pass it on with the work that they derive; they
 * read and change nothing in it.
 */
export class Epoch {
  stage: EpochStage = 'open';
  /** Work in flight or waiting, and the advance itself. */
  pending = 0;
  emit: (() => void) | undefined;
  advance: Advance | undefined;
  next: Epoch | undefined;
}

/** Fires the timers of a watermark through `derive`; a promise when it fires them in portions. */
export type Advance = (epoch: Epoch) => void | Promise<void>;
