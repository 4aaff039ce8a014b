import { SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { epochOf, type Lineage, sees, unneeded } from './lineage.ts';
import { clipSpans, continueSpans, endSpansAt, type Layer } from './spans.ts';

const layer = (incarnation: number, sequence: number): Layer => ({
  table: 'job/op',
  buckets: 1,
  lineage: [{ incarnation, sequence }],
});

test('a table sees its own rows and those of each earlier incarnation up to the snapshot it was continued from', () => {
  const lineage: Lineage = [
    { incarnation: 2, sequence: 5 },
    { incarnation: 4, sequence: 9 },
  ];
  const seen = (incarnation: number, sequence: number): boolean => sees(lineage, epochOf(incarnation, sequence));
  expect([seen(2, 5), seen(2, 6), seen(3, 0), seen(4, 9), seen(4, 10), seen(1, 0), seen(5, 0)]).toEqual([
    true,
    false,
    false,
    true,
    false,
    false,
    false,
  ]);
  expect(epochOf(3, 0)).toBeGreaterThan(epochOf(2, 2 ** 26 - 1));
  expect(() => epochOf(1, 2 ** 26)).toThrow(expect.objectContaining({ code: 'invariant-broken' }));
});

test('what is removed of a key changes what no lineage sees', () => {
  const random = new SeededRandom(3);
  const wrong: string[] = [];
  for (let n = 0; n < 2000; n++) {
    const some = (): Lineage =>
      [1, 2, 3].filter(() => random.below(2) === 0).map((incarnation) => ({ incarnation, sequence: random.below(4) }));
    const lineages = Array.from({ length: random.below(4) + 1 }, some);
    const all = [1, 2, 3].flatMap((incarnation) => [0, 1, 2, 3].map((sequence) => epochOf(incarnation, sequence)));
    const epochs = all.filter(() => random.below(2) === 0).toReversed();
    const gone = new Set(unneeded(epochs, lineages));
    const left = epochs.filter((epoch) => !gone.has(epoch));
    for (const lineage of lineages) {
      const find = (from: readonly number[]): number | undefined => from.find((epoch) => sees(lineage, epoch));
      if (find(epochs) !== find(left)) wrong.push(JSON.stringify([epochs, lineages]));
    }
    if (left.some((epoch) => !lineages.some((lineage) => sees(lineage, epoch))))
      wrong.push('a row that nobody sees stays');
  }
  expect(wrong).toEqual([]);
});

test('spans follow a table through snapshot, rescale and fork', () => {
  const whole = [{ keyGroups: { start: 0, end: 9 }, layers: [layer(1, 99)] }];
  const kept = endSpansAt(whole, 4);
  expect(kept).toEqual([{ keyGroups: { start: 0, end: 9 }, layers: [layer(1, 4)] }]);
  const low = continueSpans(clipSpans(kept, { start: 0, end: 4 }), layer(2, 99));
  expect(low[0]?.layers[0]?.lineage).toEqual([
    { incarnation: 1, sequence: 4 },
    { incarnation: 2, sequence: 99 },
  ]);
  const forked = continueSpans(kept, { ...layer(7, 99), table: 'other/op' });
  expect(forked[0]?.layers.map((one) => one.table)).toEqual(['other/op', 'job/op']);
  const halves = [...clipSpans(kept, { start: 0, end: 4 }), ...clipSpans(kept, { start: 5, end: 9 })];
  expect(endSpansAt(continueSpans(halves, layer(3, 99)), 0)).toHaveLength(1);
});
