/** A value in Redis = expiry (float64, epoch milliseconds; 0 for never) · the bytes. */
const headBytes = 8;

export function storedValue(value: Uint8Array, expiresAtMs: number): Buffer {
  const stored = Buffer.allocUnsafe(headBytes + value.length);
  stored.writeDoubleBE(expiresAtMs);
  stored.set(value, headBytes);
  return stored;
}

/** The value as long as its time is not over. */
export function liveValue(stored: Buffer | null, nowMs: number): Uint8Array | undefined {
  if (stored === null) return undefined;
  const expiresAtMs = stored.readDoubleBE();
  return expiresAtMs !== 0 && nowMs >= expiresAtMs ? undefined : stored.subarray(headBytes);
}
