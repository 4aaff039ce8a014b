import { SeededRandom } from '@millrace/kernel';
import { array, int64, msgpack } from '@millrace/state';
import { describe, expect, test } from 'vitest';
import type { WindowOptions } from '../api/aggregate.ts';
import { job } from '../api/job.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import { sideTag } from '../api/side-tag.ts';
import { perRecord } from '../api/watermarks.ts';
import type { WindowedStream } from '../api/windowed-stream.ts';
import {
  countWindow,
  cumulative,
  type FixedWindows,
  session,
  sliding,
  type TumblingWindows,
  tumbling,
} from '../api/windows.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { forSeeds, randomRun, randomSeeds } from '../testing/random-run.ts';
import {
  countOutcome,
  type FixedModel,
  fixedOutcome,
  type Item,
  type Outcome,
  type Result,
  sessionOutcome,
} from '../testing/window-model.ts';

const seeds = randomSeeds(60);
const late = sideTag<Item>('late');

/** Some keys, times that mostly rise, watermarks after some records that trail them more or less. */
function randomItems(random: SeededRandom): Item[] {
  const spreadMs = [1, 20, 200][random.below(3)] as number;
  let newestMs = random.below(100) - 50;
  return Array.from({ length: 20 + random.below(120) }, (_, id) => {
    newestMs += random.below(spreadMs);
    const timeMs = newestMs - (random.below(3) === 0 ? random.below(4 * spreadMs) : 0);
    const watermarkMs = random.below(3) === 0 ? newestMs - random.below(2 * spreadMs) : undefined;
    return { id, key: `k${random.below(3)}`, timeMs, watermarkMs, nowMs: 0 };
  });
}

type Build = (keyed: KeyedItems, options: WindowOptions<Item>) => WindowedStream<string, Item, boolean>;
type KeyedItems = KeyedStream<string, Item>;

interface Case {
  readonly items: readonly Item[];
  readonly options: WindowOptions<Item>;
  readonly build: Build;
  readonly expected: Outcome;
}

/** By aggregate or by a function of all records: both give the ids of a window's records. */
function graphOf(one: Case, whole: boolean, out: Result[], dropped: Item[]): JobGraph {
  return buildGraph(
    job('windows', (flow) => {
      const keyed = flow
        .from(generator({ record: (i) => one.items[i] as Item, records: one.items.length, splits: 1 }), {
          uid: 'items',
          timestamp: (item) => item.timeMs,
          watermarks: perRecord<Item>((item) => item.watermarkMs, { interval: 0 }),
        })
        .keyBy((item) => item.key);
      const windowed = one.build(keyed, { uid: 'windows', ...one.options });
      const results = whole
        ? windowed.process<Result>({
            output: msgpack<Result>(),
            process: (records, { key, window, emit }) =>
              emit({ key, ...window, ids: sorted(records.map(({ id }) => id)) }),
          })
        : windowed.aggregate<readonly number[], Result>({
            accumulator: array(int64),
            output: msgpack<Result>(),
            create: () => [],
            add: (ids, { id }) => [...ids, id],
            merge: (left, right) => [...left, ...right],
            result: (ids, key, window) => ({ key, startMs: window.startMs, endMs: window.endMs, ids: sorted(ids) }),
          });
      results.to(collect(out));
      if (one.options.late !== undefined) results.sideOutput(late).to(collect(dropped));
    }),
  );
}

const sorted = (ids: readonly number[]): number[] => ids.toSorted((a, b) => a - b);

/** By key and window, those of one window in the order in which they came. */
function ordered(results: readonly Result[]): string[] {
  const name = ({ key, startMs, endMs }: Result): string => `${key} ${startMs} ${endMs}`;
  const plain = results.map(({ key, startMs, endMs, ids }) => ({ key, startMs, endMs, ids: ids.join(',') }));
  return plain
    .toSorted((a, b) => (name(a as never) < name(b as never) ? -1 : name(a as never) > name(b as never) ? 1 : 0))
    .map(({ key, startMs, endMs, ids }) => `${key} [${startMs}, ${endMs}) ${ids}`);
}

function randomEarly(random: SeededRandom): number {
  return random.below(2) === 0 ? 0 : 1 + random.below(4);
}

function optionsOf(latenessMs: number, earlyRecords: number): WindowOptions<Item> {
  return {
    allowedLateness: latenessMs,
    late,
    ...(earlyRecords === 0 ? {} : { early: { records: earlyRecords } }),
  };
}

function fixedCase(random: SeededRandom): Case {
  const items = randomItems(random);
  const unitMs = 1 + random.below(40);
  const steps = 1 + random.below(5);
  const offsetMs = random.below(30) - 10;
  const latenessMs = random.below(2) * random.below(100);
  const earlyRecords = randomEarly(random);
  const common = { offsetMs, latenessMs, earlyRecords };
  const sizeMs = unitMs * steps;
  const kinds: readonly [FixedWindows, FixedModel][] = [
    [tumbling(sizeMs, { offset: offsetMs }), { ...common, sizeMs, everyMs: sizeMs, stepMs: sizeMs }],
    [sliding(sizeMs, unitMs, { offset: offsetMs }), { ...common, sizeMs, everyMs: unitMs, stepMs: sizeMs }],
    [sliding(unitMs, sizeMs, { offset: offsetMs }), { ...common, sizeMs: unitMs, everyMs: sizeMs, stepMs: unitMs }],
    [cumulative(sizeMs, unitMs, { offset: offsetMs }), { ...common, sizeMs, everyMs: sizeMs, stepMs: unitMs }],
  ];
  const [windows, model] = kinds[random.below(kinds.length)] as (typeof kinds)[number];
  return {
    items,
    options: optionsOf(latenessMs, earlyRecords),
    build: (keyed, options) => keyed.window(windows as TumblingWindows, options),
    expected: fixedOutcome(model, items),
  };
}

function sessionCase(random: SeededRandom): Case {
  const items = randomItems(random);
  const gapMs = 1 + random.below([5, 50, 400][random.below(3)] as number);
  const latenessMs = random.below(2) * random.below(200);
  const earlyRecords = randomEarly(random);
  return {
    items,
    options: optionsOf(latenessMs, earlyRecords),
    build: (keyed, options) => keyed.window(session<Item>(gapMs), options) as never,
    expected: sessionOutcome({ gapMs, latenessMs, earlyRecords }, items),
  };
}

function countCase(random: SeededRandom): Case {
  const items = randomItems(random);
  const size = 1 + random.below(6);
  const every = random.below(2) === 0 ? size : 1 + random.below(6);
  const partialAtEnd = random.below(2) === 0;
  return {
    items,
    options: {},
    build: (keyed, options) => keyed.window(countWindow(size, { every, partialAtEnd }), options),
    expected: countOutcome({ size, every, partialAtEnd }, items),
  };
}

describe.each([
  ['tumbling, sliding and cumulative windows', fixedCase],
  ['sessions', sessionCase],
  ['count windows', countCase],
])('%s', (_name, makeCase) => {
  test('emit what a loop over the records does, through crashes and restores at other parallelisms', () =>
    forSeeds(seeds, async (seed) => {
      const random = new SeededRandom(seed);
      const one = makeCase(random);
      const [out, dropped]: [Result[], Item[]] = [[], []];
      await randomRun(graphOf(one, random.below(2) === 0, out, dropped), [out, dropped], random);
      expect(ordered(out)).toEqual(ordered(one.expected.results));
      expect(sorted(dropped.map(({ id }) => id))).toEqual(sorted(one.expected.late));
    }));
});
