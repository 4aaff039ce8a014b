import { setImmediate } from 'node:timers/promises';

export const sideInputRows = 10_000;

/** The row of the side input with this key: a bounded table outside the job, that answers when it can. */
export async function sideInput(key: number): Promise<string | undefined> {
  await setImmediate();
  return key < sideInputRows ? `value ${key}` : undefined;
}
