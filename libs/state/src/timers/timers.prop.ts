import { ByteWriter, keyGroupOf, keyGroupRange, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { describe, expect, test } from 'vitest';
import type { KeyedState, TimerQueue } from '../keyed/ports.ts';
import { openKeyedState } from '../keyed/slot-keyed-state.ts';
import { WorkingSet } from '../keyed/working-set.ts';
import { keyCodec } from '../keys/key-codec.ts';
import type { KeyValue } from '../keys/key-value.ts';
import { MemoryStateStore } from '../memory/memory-state-store.ts';
import type { SnapshotHandle } from '../store.ts';
import { forSeeds } from '../testing/property.ts';
import { slowStore } from '../testing/slow-store.ts';
import { asStored, specOf } from '../testing/table-driver.ts';

const maxParallelism = 8;

interface Attempt {
  readonly generation: number;
  readonly parallelism: number;
  readonly handles: readonly SnapshotHandle[];
  readonly heldMax: number;
  /** Whether the states are told what the handles say. */
  readonly isTold: boolean;
}

async function openAll(random: SeededRandom, attempt: Attempt): Promise<KeyedState<Record<string, never>>[]> {
  const clock = new ManualClock();
  const store = slowStore(new MemoryStateStore(clock), random);
  const workingSet = new WorkingSet({ bytesMax: random.below(2) === 0 ? 1 : 100_000, clock });
  const { generation, parallelism, handles, heldMax, isTold } = attempt;
  return Promise.all(
    Array.from({ length: parallelism }, async (_, subtask) => {
      const keyGroups = keyGroupRange(subtask, parallelism, maxParallelism);
      const table = await store.openTable(specOf({ subtask, keyGroups, maxParallelism, generation }), handles);
      return openKeyedState({
        table,
        restored: handles.length > 0,
        handles: isTold ? handles : undefined,
        shape: {},
        workingSet,
        clock,
        timersHeldMax: heldMax,
      });
    }),
  );
}

function groupOf(key: KeyValue): number {
  const writer = new ByteWriter();
  keyCodec.encode(key, writer);
  return keyGroupOf(writer.bytes, 0, writer.position, maxParallelism);
}

/** Timers as `time|key|window`, the model of a queue. */
type Timers = Set<string>;

async function popAll(queue: TimerQueue, upToMs: number, random: SeededRandom): Promise<string[]> {
  const fired: string[] = [];
  for (;;) {
    const due = await queue.popDue(upToMs, 1 + random.below(7));
    if (due.length === 0) return fired;
    for (const timer of due) fired.push(`${timer.timeMs}|${timer.key as string}|${JSON.stringify(timer.namespace)}`);
  }
}

const timeOf = (timer: string): number => Number(timer.split('|')[0]);

describe('timers', () => {
  test('fire once each, in order of time, whatever is held in memory, across restore and rescale', () =>
    forSeeds(25, async (random) => {
      const model: Record<'eventTimers' | 'processingTimers', Timers> = {
        eventTimers: new Set(),
        processingTimers: new Set(),
      };
      let handles: readonly SnapshotHandle[] = [];
      for (let generation = 1; generation <= 3; generation++) {
        const parallelism = 1 + random.below(3);
        const isTold = random.below(2) === 0;
        const heldMax = 2 + random.below(12);
        const states = await openAll(random, { generation, parallelism, handles, heldMax, isTold });
        for (let round = 0; round < 15; round++) {
          const domain = random.below(3) === 0 ? 'processingTimers' : 'eventTimers';
          const timers = model[domain];
          for (let changes = random.below(25); changes > 0; changes--) {
            const key = `key ${random.below(12)}`;
            const window = random.below(2) === 0 ? undefined : 60_000 * random.below(2);
            const timeMs = random.below(60) - 20;
            const name = `${timeMs}|${key}|${JSON.stringify(window)}`;
            const group = groupOf(key);
            const state = states.find((_, i) => {
              const range = keyGroupRange(i, parallelism, maxParallelism);
              return group >= range.start && group <= range.end;
            }) as KeyedState<Record<string, never>>;
            const entry = state.enter(key, window);
            if (random.below(4) === 0) {
              state[domain].delete(entry, timeMs);
              timers.delete(name);
            } else {
              state[domain].register(entry, timeMs);
              timers.add(name);
            }
            state.leave(entry);
          }
          const next = await Promise.all(states.map(async (state) => state[domain].nextMs()));
          const nextMs = Math.min(...next);
          const earliestMs = Math.min(Number.POSITIVE_INFINITY, ...[...timers].map(timeOf));
          expect(isTold ? Math.min(nextMs, earliestMs) : earliestMs).toBe(nextMs);
          if (random.below(2) === 0) continue;
          const upToMs = random.below(60) - 20;
          const fired = await Promise.all(states.map((state) => popAll(state[domain], upToMs, random)));
          for (const own of fired) expect(own.map(timeOf)).toEqual(own.map(timeOf).toSorted((a, b) => a - b));
          const expected = [...timers].filter((timer) => timeOf(timer) <= upToMs);
          expect(fired.flat().toSorted()).toEqual(expected.toSorted());
          for (const timer of expected) timers.delete(timer);
        }
        handles = (await Promise.all(states.map((state) => state.snapshot(generation)))).map(asStored);
      }
    }));

  test('an earlier timer that is registered later is seen first', async () => {
    const [state] = await openAll(new SeededRandom(1), {
      generation: 1,
      parallelism: 1,
      handles: [],
      heldMax: 8,
      isTold: false,
    });
    const queue = (state as KeyedState<Record<string, never>>).eventTimers;
    const entry = (state as KeyedState<Record<string, never>>).enter('a');
    expect(queue.register(entry, 100)).toBe(true);
    expect(queue.register(entry, 200)).toBe(false);
    expect(queue.register(entry, 50)).toBe(true);
    expect(await queue.nextMs()).toBe(50);
    expect((await queue.popDue(100, 10)).map((timer) => timer.timeMs)).toEqual([50, 100]);
  });

  test('a timer registered while others fire is given by the next call, when it is due', async () => {
    const [state] = await openAll(new SeededRandom(1), {
      generation: 1,
      parallelism: 1,
      handles: [],
      heldMax: 8,
      isTold: false,
    });
    const { eventTimers, enter } = { eventTimers: state!.eventTimers, enter: (key: string) => state!.enter(key) };
    eventTimers.register(enter('a'), 10);
    expect(await eventTimers.popDue(Number.POSITIVE_INFINITY, 10)).toHaveLength(1);
    eventTimers.register(enter('a'), 10);
    eventTimers.register(enter('b'), 5);
    expect((await eventTimers.popDue(20, 10)).map((timer) => timer.key)).toEqual(['b', 'a']);
    expect(await eventTimers.popDue(20, 10)).toEqual([]);
  });
});
