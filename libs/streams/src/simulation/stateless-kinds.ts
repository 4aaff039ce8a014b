import { msgpack } from '@millrace/state';
import { sideTag } from '../api/side-tag.ts';
import { type Item, mix, plus } from './item.ts';
import { pick } from './key.ts';
import { type Facts, type Kind, kind, one, type ResultFacts, sourcesOf, two } from './node.ts';
import { pause } from './pause.ts';
import { recordsOf, walk } from './walk.ts';

const aside = sideTag<Item>('aside', msgpack<Item>());

/** The place of what came from `facts` is kept, that of watermarks too. */
function same({ order, time, sources, changes }: Facts): ResultFacts {
  return { order, time, sources, ...(changes === undefined ? {} : { changes }) };
}

/** Records may have overtaken each other, and watermarks others. */
function mixed({ time, sources }: Facts): ResultFacts {
  return { order: undefined, time: time === 'exact' ? 'late' : time, sources };
}

const map: Kind<{ readonly by: number; readonly moves: boolean }> = {
  name: 'map',
  inputs: 1,
  draft(random, inputs) {
    const facts = one(inputs);
    const moves = facts.order?.includes('k') !== true && random.below(2) === 0;
    return { spec: { by: random.below(100), moves }, outputs: [same(facts)] };
  },
  build: (spec, streams, uid) => [one(streams).map((item) => mapped(item, spec), { uid })],
  compute: (spec, inputs) => walk(inputs, 1, (put) => ({ record: (item, t) => put(mapped(item, spec), t) })),
};

function mapped(item: Item, { by, moves }: { readonly by: number; readonly moves: boolean }): Item {
  return { ...item, v: plus(item.v, by), k: moves ? (item.v + by) % 5 : item.k };
}

const filter: Kind<{ readonly of: number }> = {
  name: 'filter',
  inputs: 1,
  draft: (random, inputs) => ({ spec: { of: 2 + random.below(5) }, outputs: [same(one(inputs))] }),
  build: ({ of }, streams, uid) => [one(streams).filter((item) => item.v % of > 0, { uid })],
  compute: ({ of }, inputs) => walk(inputs, 1, (put) => ({ record: (item, t) => item.v % of > 0 && put(item, t) })),
};

/** None, one or two of each; every fifth goes aside. */
const flatMap: Kind<{ readonly copies: number }> = {
  name: 'flatMap',
  inputs: 1,
  draft: (random, inputs) => {
    const facts = same(one(inputs));
    return { spec: { copies: 2 + random.below(2) }, outputs: [facts, facts] };
  },
  build({ copies }, streams, uid) {
    const main = one(streams).flatMap(
      (item, _timeMs, ctx) => {
        if (item.v % 5 === 0) ctx.side(aside, item);
        return copiesOf(item, copies);
      },
      { uid },
    );
    return [main, main.sideOutput(aside)];
  },
  compute: ({ copies }, inputs) =>
    walk(inputs, 2, (put) => ({
      record(item, timeMs) {
        if (item.v % 5 === 0) put(item, timeMs, 1);
        for (const copy of copiesOf(item, copies)) put(copy, timeMs);
      },
    })),
};

function copiesOf(item: Item, copies: number): Item[] {
  return Array.from({ length: item.v % copies }, (_, i) => ({ ...item, id: `${item.id}.${i}`, v: plus(item.v, i) }));
}

const rebalance: Kind<Record<never, never>> = {
  name: 'rebalance',
  inputs: 1,
  draft: (_random, inputs) => ({ spec: {}, outputs: [mixed(one(inputs))] }),
  build: (_spec, streams, uid) => [
    one(streams)
      .rebalance()
      .map((item) => item, { uid }),
  ],
  compute: (_spec, inputs) => [recordsOf(one(inputs))],
};

/** By the lane: records of one lane have come by one way, and go on by one. */
const partitionBy: Kind<{ readonly by: number }> = {
  name: 'partitionBy',
  inputs: 1,
  draft: (random, inputs) => ({
    spec: { by: random.below(10) },
    outputs: [{ ...mixed(one(inputs)), order: one(inputs).order }],
  }),
  build: ({ by }, streams, uid) => [
    one(streams)
      .partitionBy((item, n) => (item.lane + 1 + by) % n)
      .map((item) => item, { uid }),
  ],
  compute: (_spec, inputs) => [recordsOf(one(inputs))],
};

const union: Kind<Record<never, never>> = {
  name: 'union',
  inputs: 2,
  draft(_random, inputs) {
    const [a, b] = [one(inputs), two(inputs)];
    const apart = a.sources.every((source) => !b.sources.includes(source));
    const known = apart && a.order !== undefined && b.order !== undefined;
    const times = inputs.map(({ time }) => time);
    const late = times.some((time) => time === 'late' || time === 'exact');
    return {
      spec: {},
      outputs: [
        {
          order: known ? [...new Set([...(a.order ?? []), ...(b.order ?? [])])] : undefined,
          time: times.includes('unknown') ? 'unknown' : late ? 'late' : 'safe',
          sources: sourcesOf(inputs),
        },
      ],
    };
  },
  build: (_spec, streams, uid) => [
    one(streams)
      .union(two(streams))
      .map((item) => item, { uid }),
  ],
  compute: (_spec, inputs) => [[...recordsOf(one(inputs)), ...recordsOf(two(inputs))]],
};

interface AsyncSpec {
  readonly order: 'ordered' | 'unordered';
  readonly concurrency: number;
  readonly lookup: boolean;
}

/** Calls take their time; some fail at first, and some always. */
const asynchronous: Kind<AsyncSpec> = {
  name: 'async',
  inputs: 1,
  draft(random, inputs) {
    const facts = one(inputs);
    const order = pick(random, ['ordered', 'unordered'] as const);
    const spec = { order, concurrency: 1 + random.below(6), lookup: random.below(2) === 0 };
    return { spec, outputs: [order === 'ordered' ? same(facts) : mixed(facts)] };
  },
  build({ order, concurrency, lookup }, streams, uid) {
    const options = { uid, order, concurrency, retry: { attempts: 2, backoff: 1 } };
    const call = async (item: Item, attempt: number): Promise<number> => {
      await pause(item.v);
      if (fails(item) || (item.v % 13 === 1 && attempt === 1)) throw new Error(`call ${attempt} of ${item.id}`);
      return asked(item);
    };
    if (lookup) {
      return [
        one(streams).lookupJoin({
          ...options,
          kind: 'left',
          output: msgpack<Item>(),
          lookup: (item, ctx) => (item.v % 3 === 0 ? undefined : call(item, ctx.attempt)),
          fallback: () => undefined,
          pair: (item, found: number | undefined) => ({ ...item, v: found ?? 0 }),
        }),
      ];
    }
    return [
      one(streams).mapAsync(async (item, ctx) => ({ ...item, v: await call(item, ctx.attempt) }), {
        ...options,
        fallback: (item) => ({ ...item, v: 0 }),
      }),
    ];
  },
  compute: ({ lookup }, inputs) =>
    walk(inputs, 1, (put) => ({
      record: (item, timeMs) =>
        put({ ...item, v: fails(item) || (lookup && item.v % 3 === 0) ? 0 : asked(item) }, timeMs),
    })),
};

const fails = (item: Item): boolean => item.v % 17 === 2;
const asked = (item: Item): number => mix(item.v, item.k);

export const statelessKinds: readonly Kind[] = [
  kind(map),
  kind(filter),
  kind(flatMap),
  kind(rebalance),
  kind(partitionBy),
  kind(union),
  kind(asynchronous),
];
