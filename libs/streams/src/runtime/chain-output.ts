import { assert } from '@millrace/kernel';
import type { Target } from './edge-output.ts';
import type { Output } from './operator.ts';

/** The output of one operator of a chain: passes on to the next operators and edges, and keeps watermarks in order. */
export class ChainOutput implements Output {
  recordsOut = 0;
  watermarkMs = Number.NEGATIVE_INFINITY;
  idle = false;
  readonly #main: readonly Target[];
  readonly #single: Target | undefined;
  readonly #sides: ReadonlyMap<string, readonly Target[]>;
  readonly #all: readonly Target[];

  constructor(main: readonly Target[], sides: ReadonlyMap<string, readonly Target[]>) {
    this.#main = main;
    this.#single = main.length === 1 ? main[0] : undefined;
    this.#sides = sides;
    this.#all = [...main, ...[...sides.values()].flat()];
  }

  /** Nothing follows this operator. */
  get isLast(): boolean {
    return this.#all.length === 0;
  }

  emit(value: unknown, timestampMs: number, side?: string): void {
    this.recordsOut++;
    if (side === undefined) {
      if (this.#single !== undefined) this.#single.record(value, timestampMs);
      else for (const target of this.#main) target.record(value, timestampMs);
      return;
    }
    const targets = this.#sides.get(side);
    if (targets !== undefined) for (const target of targets) target.record(value, timestampMs);
  }

  watermark(watermarkMs: number): void {
    if (watermarkMs === this.watermarkMs) return;
    assert(watermarkMs > this.watermarkMs, `watermark ${watermarkMs} after ${this.watermarkMs}`);
    this.watermarkMs = watermarkMs;
    for (const target of this.#all) target.watermark(watermarkMs);
  }

  status(idle: boolean): void {
    if (idle === this.idle) return;
    this.idle = idle;
    for (const target of this.#all) target.status(idle);
  }
}
