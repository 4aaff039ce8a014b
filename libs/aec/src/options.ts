import { MillraceError } from '@millrace/kernel';
import type { Epoch } from './epoch.ts';

/** Records in flight per subtask unless set otherwise. */
export const defaultInFlightLimit = 6000;
/** Watermarks that may wait in parallel mode unless set otherwise. */
export const defaultWatermarksWaitingMax = 1000;

export interface AecOptions<K, R> {
  /** Records in flight or waiting for their key, at most; 1 is the synchronous mode. Default 6000. */
  readonly inFlightLimit?: number;
  /**
   * `serial` (default): the input waits until a watermark has left, so its timers see exactly the records before it.
   * `parallel`: later records may start before, and its timers may see what they did.
   */
  readonly watermarks?: 'serial' | 'parallel';
  /** Parallel mode: watermarks that may wait before the input has to. Default 1000. */
  readonly watermarksWaitingMax?: number;
  /** Runs a record. Nothing returned: it is finished. A promise: in flight until that settles. */
  handle(record: R, key: K, epoch: Epoch): void | Promise<void>;
  /** The first failure, once. Must not throw. */
  onFailure?(error: unknown): void;
}

export interface AecSettings {
  readonly inFlightLimit: number;
  readonly watermarksWaitingMax: number;
}

/** Checked and with the defaults; in serial mode no watermark waits while the input goes on. */
export function compileAecOptions<K, R>(options: AecOptions<K, R>): AecSettings {
  const inFlightLimit = positive('inFlightLimit', options.inFlightLimit ?? defaultInFlightLimit);
  const waitingMax = positive('watermarksWaitingMax', options.watermarksWaitingMax ?? defaultWatermarksWaitingMax);
  return { inFlightLimit, watermarksWaitingMax: options.watermarks === 'parallel' ? waitingMax : 0 };
}

function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new MillraceError('bad-setting', `${name} is ${value}; it has to be a whole number of at least 1`);
}
