import { SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { BlockCache, type BlockOwner } from './index.ts';

class Owner implements BlockOwner {
  readonly visited: Uint8Array;
  readonly positions: Int32Array;
  readonly held = new Map<number, number>();

  constructor(slots: number) {
    this.visited = new Uint8Array(slots);
    this.positions = new Int32Array(slots).fill(-1);
  }

  evict(slot: number): void {
    this.held.delete(slot);
  }

  load(cache: BlockCache, slot: number, bytes: number): boolean {
    if (this.held.has(slot)) {
      this.visited[slot] = 1;
      return true;
    }
    const admitted = cache.admit(this, slot, bytes);
    if (admitted) this.held.set(slot, bytes);
    return admitted;
  }
}

test('an item in use survives, one that is not goes first', () => {
  const cache = new BlockCache({ bytesMax: 30 });
  const owner = new Owner(10);
  for (const slot of [0, 1, 2]) owner.load(cache, slot, 10);
  owner.load(cache, 0, 10);
  owner.load(cache, 3, 10);
  expect([...owner.held.keys()].toSorted((a, b) => a - b)).toEqual([0, 2, 3]);
});

test('an item larger than the budget is refused and evicts nothing', () => {
  const cache = new BlockCache({ bytesMax: 30 });
  const owner = new Owner(10);
  owner.load(cache, 0, 10);
  expect(owner.load(cache, 1, 31)).toBe(false);
  expect([...owner.held.keys()]).toEqual([0]);
});

test('reserved bytes push items out and come back', () => {
  const cache = new BlockCache({ bytesMax: 30 });
  const owner = new Owner(10);
  for (const slot of [0, 1, 2]) owner.load(cache, slot, 10);
  cache.reserve(15);
  expect(cache.bytes).toBe(10);
  cache.reserve(100);
  expect(cache.bytes).toBe(0);
  expect(owner.held.size).toBe(0);
  expect(owner.load(cache, 5, 1)).toBe(false);
  cache.unreserve(115);
  expect(owner.load(cache, 5, 30)).toBe(true);
});

test('the limit holds after every step and the books agree with the owners (random steps)', () => {
  const seed = Number(process.env['MILLRACE_SEED'] ?? 7);
  const random = new SeededRandom(seed);
  const cache = new BlockCache({ bytesMax: 1000 });
  let owners = [new Owner(50), new Owner(50), new Owner(50)];
  let reserved = 0;
  for (let step = 0; step < 20_000; step++) {
    const owner = owners[random.below(owners.length)] as Owner;
    const action = random.below(100);
    if (action === 0) {
      cache.release(owner);
      owners = owners.map((other) => (other === owner ? new Owner(50) : other));
    } else if (action === 1) {
      const bytes = random.below(300);
      cache.reserve(bytes);
      reserved += bytes;
    } else if (action === 2) {
      cache.unreserve(reserved);
      reserved = 0;
    } else owner.load(cache, random.below(50), 1 + random.below(120));
    const held = owners.flatMap((each) => [...each.held.values()]);
    const sum = held.reduce((a, b) => a + b, 0);
    expect(cache.bytes, `seed ${seed} step ${step}`).toBe(sum);
    expect(cache.entries).toBe(held.length);
    expect(sum === 0 || sum + reserved <= 1000).toBe(true);
  }
});
