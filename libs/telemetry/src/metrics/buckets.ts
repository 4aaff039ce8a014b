const ms = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000];
const bytes = Array.from({ length: 12 }, (_, i) => 256 * 4 ** i); // 256 B … 1 GiB
const plain = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000];

/** Upper bounds of a histogram's buckets, by the unit at the end of its name. */
export function bucketsFor(name: string): readonly number[] {
  if (name.endsWith('_ms')) return ms;
  if (name.endsWith('_seconds')) return ms.map((bound) => bound / 1000);
  if (name.endsWith('_bytes')) return bytes;
  return plain;
}
