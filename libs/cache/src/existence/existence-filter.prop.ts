import { isKind, SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import { ExistenceFilter, type ExistenceScope } from './existence-filter.ts';

const first = Number(process.env['MILLRACE_SEED'] ?? 1);
const cases = Number(process.env['MILLRACE_CASES'] ?? 150);

/** The store: what really exists, by state, group and key. */
class Store {
  readonly expiries = new Map<string, number>();

  exists(id: string, nowMs: number): boolean {
    const expiresAtMs = this.expiries.get(id);
    return expiresAtMs !== undefined && (expiresAtMs === 0 || expiresAtMs > nowMs);
  }
}

interface State {
  scope: ExistenceScope;
  readonly name: string;
  readonly ttlMs: number;
  readonly openedMs: number;
  readonly isEmpty: boolean;
}

interface Seen {
  absent: number;
  refused: number;
  /** What must not be. */
  readonly wrong: string[];
}

/** One run of random writes, deletions, looks, restarts and hand-overs, with an oracle after each step. */
function run(seed: number): Seen {
  const random = new SeededRandom(seed);
  const clock = new ManualClock(1_000_000);
  const bytesMax = 2048 << random.below(4);
  const whenFull = random.below(2) === 0 ? 'fail' : 'turn-off';
  const filter = new ExistenceFilter({ bytesMax, clock, whenFull, setting: 's' });
  const store = new Store();
  const keyGroups = { start: 2, end: 5 };
  const keys = 20 + random.below(400);
  const open = (name: string, ttlMs: number, isEmpty: boolean): State => ({
    scope: filter.openScope({ keyGroups, ttlMs, isEmpty }),
    name,
    ttlMs,
    openedMs: clock.nowMs(),
    isEmpty,
  });
  const states = [open('one', 5_000, true), open('two', 60_000, true), open('three', 0, true)];
  const seen: Seen = { absent: 0, refused: 0, wrong: [] };
  const wrong = (step: number, what: string): void => void seen.wrong.push(`seed ${seed} step ${step}: ${what}`);
  for (let step = 0; step < 2000; step++) {
    const at = random.below(40) === 0 ? random.below(3) : random.below(2);
    const state = states[at] as State;
    const keyGroup = 2 + random.below(4);
    const key = Buffer.from(`${random.below(keys)}`.padEnd(random.below(3) * 9, '-'));
    const id = `${state.name}/${keyGroup}/${key.toString()}`;
    const action = random.below(100);
    if (action < 45) {
      const expiresAtMs = state.ttlMs === 0 ? 0 : clock.nowMs() + 1 + random.below(state.ttlMs);
      try {
        state.scope.add(keyGroup, key, 0, key.length, expiresAtMs);
      } catch (error) {
        if (!isKind(error, 'setup') || whenFull !== 'fail') throw error;
        seen.refused++;
        continue; // the job fails: the write never happens
      }
      store.expiries.set(id, expiresAtMs);
    } else if (action < 55) {
      store.expiries.delete(id);
      state.scope.remove(keyGroup, key, 0, key.length);
    } else if (action < 56) {
      state.scope.close();
      states[at] = open(state.name, state.ttlMs, false);
    } else if (action < 75) {
      clock.advance(random.below(random.below(10) === 0 ? 5000 : 50));
    } else {
      const absent = state.scope.isAbsent(keyGroup, key, 0, key.length);
      const nowMs = clock.nowMs();
      if (absent) seen.absent++;
      // It never lies …
      if (absent && store.exists(id, nowMs)) wrong(step, `${id} exists`);
      // … and while it is trusted and on it says so of every key that was never there or was deleted.
      const trusted = state.isEmpty || (state.ttlMs > 0 && nowMs >= state.openedMs + state.ttlMs);
      const mustSay = trusted && !store.expiries.has(id) && filter.stats.groupsTurnedOff === 0;
      if (mustSay && !absent) wrong(step, `${id} is gone`);
    }
    if (filter.stats.bytes > bytesMax) wrong(step, `${filter.stats.bytes} bytes`);
  }
  return seen;
}

test(`of ${cases} random runs none answers "absent" for a key that exists, and its memory stays within its bound`, () => {
  let absent = 0;
  let refused = 0;
  for (let seed = first; seed < first + cases; seed++) {
    const seen = run(seed);
    expect(seen.wrong).toEqual([]);
    absent += seen.absent;
    refused += seen.refused;
  }
  expect(absent).toBeGreaterThan(cases * 20);
  expect(refused).toBeGreaterThan(cases === 1 ? -1 : cases / 2);
});
