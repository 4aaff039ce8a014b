/**
 * Turns frozen memtables into tables: built in parallel, installed in the order in which they were frozen, so that the
 * manifest after the n-th install holds exactly the writes before the n-th freeze. A memtable stays readable until its
 * table is installed. A failed build keeps its memtable; the next snapshot, freeze or blocked write tries again.
 */
import { MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Memtable } from '../memtable/memtable.ts';
import type { TableInfo } from '../sst/table-info.ts';

export interface FlushQueueOptions {
  /** Builds at once. */
  readonly buildsMax: number;
  readonly build: (memtable: Memtable, parent: TraceContext | undefined) => Promise<readonly TableInfo[]>;
  /** Called in order; from here on the tables answer instead of the oldest memtable. */
  readonly install: (tables: readonly TableInfo[]) => void;
  readonly onFailure: (error: MillraceError) => void;
}

interface Waiter {
  readonly onInstalled: () => void;
  readonly onFailed: (error: MillraceError) => void;
}

interface FrozenMemtable {
  readonly memtable: Memtable;
  readonly parent: TraceContext | undefined;
  readonly waiters: Waiter[];
  /** Idle until built; a failure returns it to idle. */
  state: 'idle' | 'building' | 'built';
  tables: readonly TableInfo[];
}

export class FlushQueue {
  readonly #options: FlushQueueOptions;
  readonly #queue: FrozenMemtable[] = [];
  /** For `close`, and how many of them count against the limit. */
  readonly #building = new Set<Promise<void>>();
  #running = 0;
  #closed = false;

  constructor(options: FlushQueueOptions) {
    this.#options = options;
  }

  /** The span of its build has `parent`. */
  add(memtable: Memtable, parent: TraceContext | undefined): void {
    this.#queue.push({ memtable, parent, waiters: [], state: 'idle', tables: [] });
    this.pump();
  }

  /** Starts what may run now, also what failed before. */
  pump(): void {
    if (this.#closed) return;
    for (const frozen of this.#queue) {
      if (this.#running >= this.#options.buildsMax) return;
      if (frozen.state !== 'idle') continue;
      frozen.state = 'building';
      this.#running++;
      const building = this.#build(frozen).finally(() => this.#building.delete(building));
      this.#building.add(building);
    }
  }

  /**
   * Calls `then` in the moment when all that is frozen now has been installed: at once if nothing is. Rejects with the
   * failure that prevents it.
   */
  afterFrozen<T>(then: () => T): Promise<T> {
    const last = this.#queue.at(-1);
    if (last === undefined) return new Promise((resolve) => resolve(then()));
    return new Promise((resolve, reject) => {
      last.waiters.push({ onInstalled: () => resolve(then()), onFailed: reject });
    });
  }

  /** Starts nothing more; rejects who waits and settles when no build is under way. */
  async close(reason: MillraceError): Promise<void> {
    this.#closed = true;
    this.#reject(reason);
    await Promise.all(this.#building);
  }

  /** Whoever is rejected may come back at once, so the books are in order before anybody hears of the end. */
  async #build(frozen: FrozenMemtable): Promise<void> {
    try {
      frozen.tables = await this.#options.build(frozen.memtable, frozen.parent);
      frozen.state = 'built';
      this.#running--;
      this.#install();
      this.pump();
    } catch (error) {
      if (frozen.state === 'building') this.#running--;
      frozen.state = 'idle';
      const failure = MillraceError.from(error);
      this.#reject(failure);
      this.#options.onFailure(failure);
    }
  }

  #install(): void {
    for (let first = this.#queue[0]; first?.state === 'built'; first = this.#queue[0]) {
      this.#queue.shift();
      this.#options.install(first.tables);
      for (const waiter of first.waiters) waiter.onInstalled();
    }
  }

  #reject(error: MillraceError): void {
    for (const frozen of this.#queue) {
      for (const waiter of frozen.waiters.splice(0)) waiter.onFailed(error);
    }
  }
}
