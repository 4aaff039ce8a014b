import type { WriteBatch } from '@millrace/state';
import type { EngineWrite } from './engine/engine.ts';

/*
 * A value in the engine = 0 · value, or 1 · expiry (float64, little-endian, epoch milliseconds) · value: the engine knows
 * nothing of expiry, so it is kept with the value and looked at by every read and by the sweep.
 */
const forever = 0;
const expiring = 1;
const headBytes = 1;
const expiringHeadBytes = 9;

/** A copy of the batch's entries as the engine takes them, in one buffer. */
export function engineWrites(batch: WriteBatch): EngineWrite[] {
  const from = batch.arena.bytes;
  let bytes = 0;
  for (let i = 0; i < batch.count; i++) bytes += expiringHeadBytes + batch.valueEnd(i) - batch.keyStart(i);
  const arena = new Uint8Array(bytes);
  const view = new DataView(arena.buffer);
  const writes: EngineWrite[] = [];
  let at = 0;
  for (let i = 0; i < batch.count; i++) {
    const [keyStart, valueStart, valueEnd] = [batch.keyStart(i), batch.valueStart(i), batch.valueEnd(i)];
    arena.set(from.subarray(keyStart, valueStart), at);
    const key = arena.subarray(at, (at += valueStart - keyStart));
    if (batch.isDelete(i)) {
      writes.push({ key, value: undefined });
      continue;
    }
    const start = at;
    const expiresAtMs = batch.expiresAtMs(i);
    arena[at++] = expiresAtMs === 0 ? forever : expiring;
    if (expiresAtMs !== 0) {
      view.setFloat64(at, expiresAtMs, true);
      at += expiringHeadBytes - headBytes;
    }
    arena.set(from.subarray(valueStart, valueEnd), at);
    at += valueEnd - valueStart;
    writes.push({ key, value: arena.subarray(start, at) });
  }
  return writes;
}

export function hasExpiry(stored: Uint8Array): boolean {
  return stored[0] === expiring;
}

/** A view of the value; undefined when its time is over. */
export function liveValue(stored: Uint8Array, nowMs: number): Uint8Array | undefined {
  if (!hasExpiry(stored)) return stored.subarray(headBytes);
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  return nowMs < view.getFloat64(headBytes, true) ? stored.subarray(expiringHeadBytes) : undefined;
}
