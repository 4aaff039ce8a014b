import type { Plan } from './program.ts';

type Origin = 'input' | 'timer' | 'spawned';

interface Item {
  readonly plan: Plan;
  readonly origin: Origin;
  /** Watermarks and marks that had arrived before it, or before its first ancestor. */
  readonly epoch: number;
  state: 'waiting' | 'running' | 'finished';
}

/** Sees all that a controller does and holds it against the promises. Faults are collected: a throw would be the controller's. */
export class Observer {
  readonly faults: string[] = [];
  readonly #items = new Map<number, Item>();
  readonly #unfinished = new Set<Item>();
  readonly #busyKeys = new Set<number>();
  readonly #inputs = new Map<number, number[]>();
  /** What the handlers made of each key by reading, waiting and writing. */
  readonly store: Map<number, readonly number[]>;
  readonly #restored: ReadonlyMap<number, readonly number[]>;
  arrived = 0;
  emitted = 0;
  failures = 0;

  constructor(restored: ReadonlyMap<number, readonly number[]>) {
    this.#restored = restored;
    this.store = new Map(restored);
  }

  add(plan: Plan, origin: Origin, epoch: number = this.arrived): void {
    const item: Item = { plan, origin, epoch, state: 'waiting' };
    this.#items.set(plan.id, item);
    this.#unfinished.add(item);
    if (origin === 'input') this.#inputs.set(plan.key, [...(this.#inputs.get(plan.key) ?? []), plan.id]);
  }

  epochOf(plan: Plan): number {
    return (this.#items.get(plan.id) as Item).epoch;
  }

  get derivedUnfinished(): number {
    return [...this.#unfinished].filter((item) => item.origin !== 'input').length;
  }

  starts(plan: Plan, serial: boolean): void {
    const item = this.#items.get(plan.id) as Item;
    this.check(this.failures === 0, 'A4', () => `${plan.id} starts after the failure`);
    this.check(item.state === 'waiting', 'A1', () => `${plan.id} starts twice`);
    this.check(!this.#busyKeys.has(plan.key), 'A1', () => `${plan.id} starts while its key is busy`);
    if (item.origin === 'input') {
      for (const other of this.#unfinished) {
        const waits = other.origin !== 'input' && other.state === 'waiting' && other.plan.key === plan.key;
        this.check(!waits, 'A7', () => `input ${plan.id} starts before derived ${other.plan.id}`);
      }
      if (serial)
        this.check(this.emitted === item.epoch, 'A3', () => `${plan.id} starts before the watermark has left`);
    }
    if (item.origin === 'timer') {
      for (const other of this.#unfinished) {
        this.check(other.epoch >= item.epoch, 'A3', () => `timer ${plan.id} fires before ${other.plan.id} is finished`);
      }
    }
    item.state = 'running';
    this.#busyKeys.add(plan.key);
  }

  finishes(plan: Plan): void {
    const item = this.#items.get(plan.id) as Item;
    item.state = 'finished';
    this.#unfinished.delete(item);
    this.#busyKeys.delete(plan.key);
  }

  emits(watermark: number): void {
    this.check(this.failures === 0, 'A4', () => `watermark ${watermark} leaves after the failure`);
    this.check(watermark === this.emitted, 'A3', () => `watermark ${watermark} leaves after ${this.emitted} others`);
    for (const item of this.#unfinished) {
      this.check(
        item.epoch > watermark,
        'A3',
        () => `watermark ${watermark} leaves before ${item.plan.id} is finished`,
      );
    }
    this.emitted++;
  }

  /** Nothing is left, and each key has got what a sequential run gives it. */
  drained(): void {
    this.check(this.#unfinished.size === 0, 'A5', () => `drained with ${this.#unfinished.size} unfinished`);
    this.check(
      this.emitted === this.arrived,
      'A5',
      () => `drained with ${this.arrived - this.emitted} watermarks waiting`,
    );
    const all = Map.groupBy(this.#items.values(), (item) => item.plan.key);
    for (const [key, items] of all) {
      const applied = (this.store.get(key) ?? []).slice(this.#restored.get(key)?.length ?? 0);
      const inputs = applied.filter((id) => this.#items.get(id)?.origin === 'input');
      this.check(
        inputs.join() === (this.#inputs.get(key) ?? []).join(),
        'A1',
        () => `key ${key}: inputs ${inputs.join()}`,
      );
      const once = new Set(applied).size === applied.length && applied.length === items.length;
      this.check(once, 'A1', () => `key ${key}: ${items.length} to apply, applied ${applied.join()}`);
    }
  }

  check(holds: boolean, promise: string, message: () => string): void {
    if (!holds) this.faults.push(`${promise}: ${message()}`);
  }
}
