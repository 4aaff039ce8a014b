import { aggregating, int64, list, map, reducing, value } from '@millrace/state';
import { sideTag } from '../api/side-tag.ts';
import { common, digest, type Field, type Item, itemCodec, mix, nothing, plus, resultOf } from './item.ts';
import { draftKey, isOrdered, type KeySpec, keyed, keyText, keyValue, pick } from './key.ts';
import { type Facts, type Kind, kind, one, type ResultFacts } from './node.ts';
import { pause } from './pause.ts';
import { walk } from './walk.ts';

const odd = sideTag<Item>('odd', itemCodec);

/** Operators that tell something at each record: what they say depends on the records of the key before it, in order. */
function running(facts: Facts, { keys }: KeySpec): ResultFacts {
  return { order: keys, time: facts.time, sources: facts.sources };
}

interface Digesting extends KeySpec {
  readonly spawns: boolean;
  readonly aside: boolean;
}

interface Told {
  readonly digest: number;
  readonly count: number;
  readonly sum: number;
  readonly last: readonly number[];
  readonly agg: number;
}

const told = (item: Item, { digest: all, count, sum, last, agg }: Told): Item => ({
  ...item,
  v: mix(mix(mix(all, count), mix(sum, agg)), last.reduce(mix, 7)),
});

/** Every kind of state, read and written at each record. */
const digesting: Kind<Digesting> = {
  name: 'process',
  inputs: 1,
  draft(random, inputs) {
    const key = draftKey(random, inputs);
    if (!isOrdered(key, one(inputs))) return undefined;
    const facts = running(one(inputs), key);
    return {
      spec: { ...key, spawns: random.below(2) === 0, aside: random.below(2) === 0 },
      outputs: [facts, facts],
    };
  },
  build(spec, streams, uid) {
    const main = keyed(spec, one(streams)).process({
      uid,
      execution: spec.execution,
      state: {
        digest: value(int64),
        far: value(int64, { apart: true }),
        counts: map(int64, int64),
        sum: reducing(int64, plus),
        last: list(int64),
        agg: aggregating(
          { create: () => 1, add: (a: number, v: number) => mix(a, v), result: (a: number) => a },
          int64,
        ),
      },
      output: itemCodec,
      async onRecord(item, ctx) {
        const { state } = ctx;
        await pause(item.v);
        const [old, count] = await Promise.all([state.digest.get(), state.counts.get(item.v % 3)]);
        state.digest.set(mix(old ?? 7, digest(item)));
        state.far.set(item.v);
        state.counts.set(item.v % 3, (count ?? 0) + 1);
        await state.sum.add(item.v);
        await state.agg.add(item.v);
        if (item.v % 4 === 0) state.last.clear();
        await state.last.add(item.v);
        const tell = async (own: typeof ctx): Promise<void> => {
          const last = await own.state.last.get();
          const numbers = await Promise.all([own.state.sum.get(), own.state.digest.get(), own.state.agg.get()]);
          const [sum = 0, all = 0, agg = 0] = numbers;
          own.emit(told(item, { digest: all, count: (count ?? 0) + 1, sum, last, agg }));
        };
        if (spec.aside && item.v % 2 === 1) ctx.side(odd, item);
        if (spec.spawns) ctx.spawn(tell);
        else await tell(ctx);
      },
    });
    return [main, main.sideOutput(odd)];
  },
  compute: (spec, inputs) =>
    walk(inputs, 2, (put) => {
      const states = new Map<string, { digest: number; counts: number[]; sum: number; last: number[]; agg: number }>();
      return {
        record(item, timeMs) {
          const key = keyText(item, spec.keys);
          const state = states.get(key) ?? { digest: 7, counts: [0, 0, 0], sum: -1, last: [], agg: 1 };
          states.set(key, state);
          state.digest = mix(state.digest, digest(item));
          const count = ((state.counts[item.v % 3] as number) += 1);
          state.sum = state.sum < 0 ? item.v : plus(state.sum, item.v);
          state.agg = mix(state.agg, item.v);
          if (item.v % 4 === 0) state.last = [];
          state.last.push(item.v);
          if (spec.aside && item.v % 2 === 1) put(item, timeMs, 1);
          put(told(item, { digest: state.digest, count, sum: state.sum, last: state.last, agg: state.agg }), timeMs);
        },
      };
    }),
};

/** `reduce` and `aggregate`, which emit at each record. */
const folding: Kind<KeySpec & { readonly reduces: boolean }> = {
  name: 'fold',
  inputs: 1,
  draft(random, inputs) {
    const key = draftKey(random, inputs);
    if (!isOrdered(key, one(inputs))) return undefined;
    return { spec: { ...key, reduces: random.below(2) === 0 }, outputs: [running(one(inputs), key)] };
  },
  build(spec, streams, uid) {
    const { execution } = spec;
    const stream = keyed(spec, one(streams));
    if (spec.reduces) return [stream.reduce(combined, { uid, execution })];
    const result = (sum: Item): Item => ({ ...sum, v: plus(sum.v, 1) });
    return [
      stream.aggregate({
        uid,
        execution,
        accumulator: itemCodec,
        output: itemCodec,
        create: () => nothing,
        add: combined,
        result,
      }),
    ];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const folded = new Map<string, Item>();
      return {
        record(item, timeMs) {
          const key = keyText(item, spec.keys);
          const old = folded.get(key) ?? (spec.reduces ? undefined : nothing);
          const next = old === undefined ? item : combined(old, item);
          folded.set(key, next);
          put(spec.reduces ? next : { ...next, v: plus(next.v, 1) }, timeMs);
        },
      };
    }),
};

const combined = (a: Item, b: Item): Item => ({ ...b, v: mix(a.v, b.v) });

interface Picking extends KeySpec {
  readonly keep: 'first' | 'last';
}

const deduplicate: Kind<Picking> = {
  name: 'deduplicate',
  inputs: 1,
  draft(random, inputs) {
    const key = draftKey(random, inputs);
    const facts = one(inputs);
    const keep = pick(random, ['first', 'last'] as const);
    if (!isOrdered(key, facts) || (keep === 'last' && facts.time === 'unknown')) return undefined;
    return { spec: { ...key, keep }, outputs: [running(facts, key)] };
  },
  build: (spec, streams, uid) => {
    const { keep, execution } = spec;
    return [keyed(spec, one(streams)).deduplicate({ uid, execution, keep })];
  },
  compute: ({ keys, keep }, inputs) =>
    walk(inputs, 1, (put) => {
      const newest = new Map<string, number>();
      return {
        record(item, timeMs) {
          const key = keyText(item, keys);
          const before = newest.get(key);
          if (before !== undefined && (keep === 'first' || timeMs < before)) return;
          newest.set(key, timeMs);
          put(item, timeMs);
        },
      };
    }),
};

interface Ranking extends KeySpec {
  readonly n: number;
  readonly byM: boolean;
}

const topN: Kind<Ranking> = {
  name: 'topN',
  inputs: 1,
  draft(random, inputs) {
    const key = draftKey(random, inputs);
    if (!isOrdered(key, one(inputs))) return undefined;
    return {
      spec: { ...key, n: 1 + random.below(4), byM: random.below(2) === 0 },
      outputs: [running(one(inputs), key)],
    };
  },
  build(spec, streams, uid) {
    return [
      keyed(spec, one(streams)).topN({
        uid,
        execution: spec.execution,
        n: spec.n,
        compare: (a, b) => (b.v % 50) - (a.v % 50),
        ...(spec.byM ? { id: (item: Item) => `${item.m}` } : {}),
        codec: itemCodec,
        output: itemCodec,
        result: (best) => ranking(best, spec.keys),
      }),
    ];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const lists = new Map<string, Item[]>();
      return {
        record(item, timeMs) {
          const key = keyText(item, spec.keys);
          const old = lists.get(key) ?? [];
          const others = spec.byM ? old.filter((other) => other.m !== item.m) : old;
          // A stable sort: of two that are equally good the earlier is better.
          const next = [...others, item].toSorted((a, b) => (b.v % 50) - (a.v % 50)).slice(0, spec.n);
          lists.set(key, next);
          if (next.length !== old.length || next.some((other, i) => other !== old[i]))
            put(ranking(next, spec.keys), timeMs);
        },
      };
    }),
};

function ranking(best: readonly Item[], keys: readonly Field[]): Item {
  const v = best.reduce((all, item) => mix(all, digest(item)), 1);
  return best[0] === undefined ? nothing : resultOf(common(best[0], keys), 'best', v);
}

/** Keyed, with what was found kept in the state: each record leaves with what its key is worth. */
const lookup: Kind<KeySpec & { readonly caches: boolean }> = {
  name: 'lookup',
  inputs: 1,
  draft(random, inputs) {
    const key = draftKey(random, inputs);
    const facts = one(inputs);
    // Nothing depends on what came before, but the order is that of the key.
    const order = isOrdered(key, facts) ? key.keys : undefined;
    const spec = { ...key, caches: random.below(2) === 0 };
    return { spec, outputs: [{ ...running(facts, key), order }] };
  },
  build(spec, streams, uid) {
    const { execution, caches } = spec;
    return [
      keyed(spec, one(streams)).lookupJoin({
        uid,
        execution,
        concurrency: 5,
        output: itemCodec,
        ...(caches ? { cache: { codec: int64, ttl: { hours: 1 } } } : {}),
        lookup: async (key) => {
          const worth = worthOf(JSON.stringify(key));
          await pause(worth);
          return worth % 4 === 0 ? undefined : worth;
        },
        pair: (item, found) => ({ ...item, v: plus(item.v, found) }),
      }),
    ];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => ({
      record(item, timeMs) {
        const worth = worthOf(JSON.stringify(keyValue(item, spec)));
        if (worth % 4 > 0) put({ ...item, v: plus(item.v, worth) }, timeMs);
      },
    })),
};

function worthOf(key: string): number {
  let worth = 1;
  for (let i = 0; i < key.length; i++) worth = mix(worth, key.charCodeAt(i));
  return worth;
}

export const keyedKinds: readonly Kind[] = [
  kind(digesting),
  kind(folding),
  kind(deduplicate),
  kind(topN),
  kind(lookup),
];
