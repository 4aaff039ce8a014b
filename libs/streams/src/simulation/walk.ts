import type { Item } from './item.ts';
import type { Line } from './node.ts';

/** Where the reference puts results. */
export type Put = (item: Item, timeMs: number, output?: number) => void;

/** The circumstances of a record. */
export interface Arrival {
  readonly input: number;
  readonly watermarkMs: number;
}

export interface Walker {
  record(item: Item, timeMs: number, arrival: Arrival): void;
  /** At each watermark, the last of which is the end of the input. */
  watermark?(watermarkMs: number): void;
}

/**
 * One record after the other, of each input in turn; the results go to `outputs` lists, with the watermarks in their
 * places. With two inputs no watermark but the end has a place.
 */
export function walk(
  inputs: readonly (readonly Line[])[],
  outputs: number,
  make: (put: Put) => Walker,
): readonly (readonly Line[])[] {
  const results = Array.from({ length: outputs }, (): Line[] => []);
  const walker = make((item, timeMs, output = 0) => void results[output]?.push({ item, timeMs }));
  let nowMs = Number.NEGATIVE_INFINITY;
  for (const [input, lines] of inputs.entries()) {
    for (const line of lines) {
      if ('item' in line) {
        walker.record(line.item, line.timeMs, { input, watermarkMs: nowMs });
      } else if (inputs.length === 1 && line.watermarkMs > nowMs) {
        nowMs = line.watermarkMs;
        walker.watermark?.(nowMs);
        for (const list of results) list.push(line);
      }
    }
  }
  walker.watermark?.(Number.POSITIVE_INFINITY);
  return results;
}

/** The records alone. */
export function recordsOf(lines: readonly Line[]): readonly { readonly item: Item; readonly timeMs: number }[] {
  return lines.filter((line) => 'item' in line);
}

/** Timers as they are promised: each key and time once, and they fire in order of time, never before it. */
export class Timers {
  readonly #pending = new Map<string, { readonly key: string; readonly timeMs: number }>();

  at(key: string, timeMs: number): void {
    this.#pending.set(`${timeMs} ${key}`, { key, timeMs });
  }

  fire(watermarkMs: number, handler: (key: string, timeMs: number) => void): void {
    for (;;) {
      const due = [...this.#pending].filter(([, one]) => one.timeMs <= watermarkMs);
      const [first] = due.toSorted(([, a], [, b]) => a.timeMs - b.timeMs);
      if (first === undefined) return;
      this.#pending.delete(first[0]);
      handler(first[1].key, first[1].timeMs);
    }
  }
}
