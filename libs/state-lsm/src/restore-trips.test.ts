import { ByteWriter, keyGroupOf, sleep } from '@millrace/kernel';
import { drive, ManualClock } from '@millrace/kernel/testing';
import { defaultLsmLimits, inlineExecutor } from '@millrace/lsm';
import {
  json,
  keyCodec,
  openKeyedState,
  type SnapshotHandle,
  type StateStore,
  type TableSpec,
  value,
  WorkingSet,
} from '@millrace/state';
import { noTelemetry } from '@millrace/telemetry';
import type { Holder } from '@millrace/ufs';
import { describe, expect, it } from 'vitest';
import { openLsmStore } from './index.ts';
import { MemoryHome } from './testing/memory-home.ts';

const latencyMs = 23;
const maxParallelism = 128;
const limits = { ...defaultLsmLimits, memtableBytes: 1 << 20 };

/** A home across a network: each read of a file or an object takes a round trip; writes are not looked at here. */
class DistantHome extends MemoryHome {
  readonly #clock: ManualClock;
  isDistant = false;
  objectReads = 0;

  constructor(clock: ManualClock) {
    super();
    this.#clock = clock;
    this.files.before = (operation) => (operation === 'read' ? this.#trip() : undefined);
  }

  override async read(path: string): Promise<Holder> {
    this.objectReads++;
    await this.#trip();
    return await super.read(path);
  }

  async #trip(): Promise<void> {
    if (this.isDistant) await sleep(this.#clock, latencyMs);
  }
}

function openStore(home: DistantHome, clock: ManualClock): StateStore {
  const { files, namespace } = home;
  const executor = inlineExecutor(files);
  const cacheBytes = 64 << 20;
  return openLsmStore({ files, holders: home, namespace, executor, cacheBytes, limits, clock, telemetry: noTelemetry });
}

function specOf(subtask: number, parallelism: number, generation: number): TableSpec {
  const size = maxParallelism / parallelism;
  const keyGroups = { start: subtask * size, end: (subtask + 1) * size - 1 };
  return { job: 'job', operator: 'count', subtask, keyGroups, maxParallelism, generation };
}

function groupOf(key: string): number {
  const writer = new ByteWriter(64);
  keyCodec.encode(key, writer);
  return keyGroupOf(writer.bytes, 0, writer.position, maxParallelism);
}

const scope = { open: true, enter: () => undefined, leave: () => undefined };
const shape = { total: value(json<number>()) };

async function openState(store: StateStore, spec: TableSpec, handles: readonly SnapshotHandle[], clock: ManualClock) {
  const table = await store.openTable(spec, handles);
  const workingSet = new WorkingSet({ bytesMax: 16 << 20, cacheBytesMax: 16 << 20, clock });
  return await openKeyedState({ table, restored: handles.length > 0, handles, shape, workingSet, clock });
}

/** Four subtasks, each with keys, and with timers when wanted, and some checkpoints. */
async function seed(home: DistantHome, clock: ManualClock, timers: boolean): Promise<SnapshotHandle[]> {
  const store = openStore(home, clock);
  const handles: SnapshotHandle[] = [];
  for (let subtask = 0; subtask < 4; subtask++) {
    const spec = specOf(subtask, 4, 1);
    const state = await openState(store, spec, [], clock);
    for (let checkpoint = 1; checkpoint <= 3; checkpoint++) {
      for (let i = 0; i < 2000; i++) {
        const key = `key-${checkpoint}-${i}`;
        if (Math.floor(groupOf(key) / (maxParallelism / 4)) !== subtask) continue;
        const entry = state.enter(key);
        state.facade(entry, scope).total.set(i);
        if (timers) state.eventTimers.register(entry, 1000 + i);
        state.leave(entry);
      }
      handles[subtask] = await state.snapshot(checkpoint);
    }
    await state.close();
  }
  await store.close();
  return handles;
}

describe('a restore on a store with a latency of 23 ms', () => {
  it.each([
    { to: 4, timers: false },
    { to: 1, timers: false },
    { to: 4, timers: true },
    { to: 1, timers: true },
  ])(
    'from four subtasks to $to takes one round trip and reads no byte of state (timers: $timers)',
    async ({ to, timers }) => {
      const clock = new ManualClock();
      const home = new DistantHome(clock);
      const handles = await drive(clock, seed(home, clock, timers));
      expect(home.files.files.size).toBeGreaterThanOrEqual(12);
      home.isDistant = true;
      const startMs = clock.nowMs();
      const reads = home.files.reads;
      const store = openStore(home, clock);
      const spec = specOf(0, to, 2);
      const mine = handles.filter((handle) => handle.keyGroups.start <= spec.keyGroups.end);
      const state = await drive(clock, openState(store, spec, mine, clock));
      expect({
        trips: (clock.nowMs() - startMs) / latencyMs,
        objects: home.objectReads,
        reads: home.files.reads - reads,
      }).toEqual({
        trips: 1,
        objects: mine.length,
        reads: 0,
      });
      // The first record of a key: the end of each file that may have it, then a block.
      const key = Array.from({ length: 2000 }, (_, i) => `key-1-${i}`).find(
        (one) => groupOf(one) <= spec.keyGroups.end,
      );
      const entry = state.enter(key);
      expect(await drive(clock, Promise.resolve(state.facade(entry, scope).total.get()))).toBeTypeOf('number');
      expect((clock.nowMs() - startMs) / latencyMs).toBeLessThanOrEqual(3);
      state.leave(entry);
      // Timers are read when they may be due, those of all key groups together.
      const beforeMs = clock.nowMs();
      const due = await drive(clock, Promise.resolve(state.eventTimers.popDue(Number.MAX_SAFE_INTEGER, 10)));
      expect(due).toHaveLength(timers ? 10 : 0);
      expect((clock.nowMs() - beforeMs) / latencyMs).toBeLessThanOrEqual(12);
      await state.close();
      await store.close();
    },
  );
});
