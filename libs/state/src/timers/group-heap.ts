import type { TimerGroup } from './timer-group.ts';

/** A binary heap of timer groups by their earliest time, each knowing its place. */
export class GroupHeap {
  readonly #groups: TimerGroup[] = [];

  get top(): TimerGroup | undefined {
    return this.#groups[0];
  }

  [Symbol.iterator](): Iterator<TimerGroup> {
    return this.#groups[Symbol.iterator]();
  }

  add(group: TimerGroup): void {
    group.heapIndex = this.#groups.length;
    this.#groups.push(group);
    this.#up(group);
  }

  /** Call when the earliest time of a group has changed. */
  update(group: TimerGroup): void {
    this.#up(group);
    this.#down(group);
  }

  #up(group: TimerGroup): void {
    while (group.heapIndex > 0) {
      const parent = this.#groups[(group.heapIndex - 1) >> 1] as TimerGroup;
      if (parent.headMs <= group.headMs) return;
      this.#swap(parent, group);
    }
  }

  #down(group: TimerGroup): void {
    for (;;) {
      const left = this.#groups[2 * group.heapIndex + 1];
      const right = this.#groups[2 * group.heapIndex + 2];
      if (left === undefined) return;
      const child = right !== undefined && right.headMs < left.headMs ? right : left;
      if (group.headMs <= child.headMs) return;
      this.#swap(group, child);
    }
  }

  #swap(a: TimerGroup, b: TimerGroup): void {
    const index = a.heapIndex;
    a.heapIndex = b.heapIndex;
    b.heapIndex = index;
    this.#groups[a.heapIndex] = a;
    this.#groups[b.heapIndex] = b;
  }
}
