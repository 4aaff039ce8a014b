import { type Random, SeededRandom } from '@millrace/kernel';
import type { Trace, TraceEvent } from './trace.ts';

const fileBytes = 8 * 1024 * 1024;
const stepMs = 200;

/** All files are there before the trace begins, and the newest of them were written last. */
function filesOf(count: number): TraceEvent[] {
  return Array.from({ length: count }, (_, file) => ({ kind: 'written', atMs: file, file, bytes: fileBytes }));
}

/**
 * The scenario of the seed: a working set of 1.2 × the cache (60 files, a cache of 50), each file read as often as any other,
 * one after the other. Least recently used goes just before it is needed.
 */
export function thrash(): Trace {
  const count = 60;
  const events = filesOf(count);
  for (let step = 0; step < 3000; step++) {
    for (let i = 0; i < 4; i++) {
      const file = (step * 4 + i) % count;
      events.push({ kind: 'read', atMs: 1000 + step * stepMs, file, bytes: fileBytes, reads: 10 });
    }
  }
  return { name: 'thrash (1.2 × cache, cyclic)', events };
}

/** The same working set, but what is cached at first is not what is read: a restart on another machine, or a hot set that moves. */
export function coldStart(): Trace {
  const { events } = thrash();
  // 50 files that nobody reads were written last.
  const others = Array.from(
    { length: 50 },
    (_, i): TraceEvent => ({ kind: 'written', atMs: 500, file: 1000 + i, bytes: fileBytes }),
  );
  return { name: 'thrash, cache cold at first', events: [...events.slice(0, 60), ...others, ...events.slice(60)] };
}

/** Zipf-like reads of 200 files, a quarter of which fits, whose hot end moves every two minutes; a scan over all now and then. */
export function movingHotSet(seed: number): Trace {
  const random = new SeededRandom(seed);
  const count = 200;
  const events = filesOf(count);
  for (let step = 0; step < 3000; step++) {
    const atMs = 1000 + step * stepMs;
    const shift = Math.floor(step / 600) * 37;
    for (const [file, reads] of batch(random, count, shift)) {
      events.push({ kind: 'read', atMs, file, bytes: fileBytes, reads });
    }
    if (step % 500 === 499) {
      for (let file = 0; file < count; file++) events.push({ kind: 'read', atMs, file, bytes: fileBytes, reads: 1 });
    }
  }
  return { name: 'moving hot set with scans', events };
}

function batch(random: Random, count: number, shift: number): Map<number, number> {
  const reads = new Map<number, number>();
  for (let i = 0; i < 40; i++) {
    const rank = Math.floor(count ** (random.below(1_000_000) / 1_000_000)) - 1;
    const file = (rank * 7 + shift) % count;
    reads.set(file, (reads.get(file) ?? 0) + 1);
  }
  return reads;
}
