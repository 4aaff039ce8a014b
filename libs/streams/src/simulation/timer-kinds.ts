import type { Random } from '@millrace/kernel';
import { aggregating, int64, type KeyValue, list, map, reducing, value } from '@millrace/state';
import type { KeyedContext } from '../api/process.ts';
import { common, digest, type Item, itemCodec, mix, nothing, plus, resultOf } from './item.ts';
import { draftKey, type KeySpec, keyed, keyText } from './key.ts';
import { type Facts, type Kind, kind, one, type ResultFacts, sourcesOf, two } from './node.ts';
import { pause } from './pause.ts';
import { Timers, walk } from './walk.ts';

/** Nothing but timers emit, in order of time. */
function timed(inputs: readonly Facts[], { keys }: KeySpec): ResultFacts {
  return { order: keys, time: one(inputs).time, sources: sourcesOf(inputs) };
}

/** Where what a timer finds is known: two inputs have no common place for their watermarks. */
function timersKnown(inputs: readonly Facts[]): boolean {
  const [first] = inputs;
  return inputs.every(({ time }) => time === 'safe') || (inputs.length === 1 && first?.time === 'exact');
}

interface Buckets extends KeySpec {
  readonly sizeMs: number;
  readonly delayMs: number;
}

const bucketState = { sums: map(int64, int64), common: value(itemCodec) };
type BucketContext = KeyedContext<KeyValue, typeof bucketState, Item>;

const bucketOf = (timeMs: number, { sizeMs }: Buckets): number => Math.floor(timeMs / sizeMs) * sizeMs;
const timerOf = (bucket: number, { sizeMs, delayMs }: Buckets): number => bucket + sizeMs - 1 + delayMs;

/** Windows by hand: sums in a map, and a timer for the end of each. One input, or two that share the state. */
function buckets(inputs: 1 | 2): Kind<Buckets> {
  return {
    name: inputs === 1 ? 'timers' : 'connect',
    inputs,
    draft(random, facts) {
      if (!timersKnown(facts)) return undefined;
      const delayMs = random.below(2) * random.below(200);
      const spec = { ...draftKey(random, facts), sizeMs: 1 + random.below(300), delayMs };
      return { spec, outputs: [timed(facts, spec)] };
    },
    build(spec, streams, uid) {
      const add = async (item: Item, ctx: BucketContext, weight: number): Promise<void> => {
        const bucket = bucketOf(ctx.timestampMs, spec);
        ctx.timers.at(timerOf(bucket, spec));
        ctx.state.common.set(resultOf(common(item, spec.keys), '', 0));
        const sum = await ctx.state.sums.get(bucket);
        await pause(item.v);
        ctx.state.sums.set(bucket, plus(sum ?? 0, digest(item) * weight));
      };
      const options = {
        uid,
        execution: spec.execution,
        state: bucketState,
        output: itemCodec,
        async onTimer(timeMs: number, ctx: BucketContext): Promise<void> {
          const bucket = timeMs - timerOf(0, spec);
          const [sum, of] = await Promise.all([ctx.state.sums.get(bucket), ctx.state.common.get()]);
          await pause(sum ?? 0);
          ctx.state.sums.delete(bucket);
          ctx.emit({ ...(of ?? nothing), id: `b${bucket}`, v: sum ?? -1 });
        },
      };
      const stream = keyed(spec, one(streams));
      if (inputs === 1) return [stream.process({ ...options, onRecord: (item, ctx) => add(item, ctx, 1) })];
      const both = stream.connect(keyed(spec, two(streams)));
      return [
        both.process({
          ...options,
          onLeft: (item, ctx) => add(item, ctx, 1),
          onRight: (item, ctx) => add(item, ctx, 2),
        }),
      ];
    },
    compute: (spec, lines) =>
      walk(lines, 1, (put) => {
        const sums = new Map<string, Item>();
        const timers = new Timers();
        return {
          record(item, timeMs, { input }) {
            const bucket = bucketOf(timeMs, spec);
            const key = keyText(item, spec.keys);
            timers.at(key, timerOf(bucket, spec));
            const old = sums.get(`${key} ${bucket}`)?.v ?? 0;
            const sum = plus(old, digest(item) * (input + 1));
            sums.set(`${key} ${bucket}`, resultOf(common(item, spec.keys), `b${bucket}`, sum));
          },
          watermark: (watermarkMs) =>
            timers.fire(watermarkMs, (key, timeMs) => {
              const name = `${key} ${timeMs - timerOf(0, spec)}`;
              const result = sums.get(name);
              sums.delete(name);
              if (result !== undefined) put(result, timeMs);
            }),
        };
      }),
  };
}

/** The last time that a date can have: only the end of the input comes to it. */
const endMs = 8.64e15;

/** Tells everything that it knows of a key when the input ends, whatever the order in which it came. */
const totals: Kind<KeySpec> = {
  name: 'totals',
  inputs: 1,
  draft(random, inputs) {
    const spec = draftKey(random, inputs);
    const facts = timed(inputs, spec);
    // The results come at the end of time, before which nothing of them is late.
    return { spec, outputs: [{ ...facts, time: facts.time === 'exact' ? 'exact' : 'safe' }] };
  },
  build(spec, streams, uid) {
    return [
      keyed(spec, one(streams)).process({
        uid,
        execution: spec.execution,
        state: {
          of: value(itemCodec),
          all: list(int64),
          sums: map(int64, int64),
          most: reducing(int64, Math.max),
          many: aggregating(
            { create: () => 0, add: (n: number, by: number) => n + by, result: (n: number) => n },
            int64,
          ),
        },
        output: itemCodec,
        async onRecord(item, ctx) {
          const { state } = ctx;
          ctx.timers.at(endMs);
          state.of.set(resultOf(common(item, spec.keys), 'total', 0));
          const sum = await state.sums.get(item.v % 5);
          await pause(item.v);
          state.sums.set(item.v % 5, plus(sum ?? 0, digest(item)));
          await Promise.all([state.all.add(item.v), state.most.add(item.v), state.many.add(1)]);
        },
        async onTimer(_timeMs, ctx) {
          const { state } = ctx;
          const [of, all, most, many] = await Promise.all([
            state.of.get(),
            state.all.get(),
            state.most.get(),
            state.many.get(),
          ]);
          let v = mix(most ?? -1, many ?? -1);
          for await (const [m, sum] of state.sums.entries()) v = mix(v, mix(m, sum));
          for (const one of all.toSorted((a, b) => a - b)) v = mix(v, one);
          ctx.emit({ ...(of ?? nothing), v });
        },
      }),
    ];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const keys = new Map<string, Item[]>();
      return {
        record(item) {
          const key = keyText(item, spec.keys);
          keys.set(key, [...(keys.get(key) ?? []), item]);
        },
        watermark(watermarkMs) {
          if (watermarkMs < endMs) return;
          for (const items of keys.values()) {
            let v = mix(Math.max(...items.map((item) => item.v)), items.length);
            for (let m = 0; m < 5; m++) {
              const own = items.filter((item) => item.v % 5 === m);
              if (own.length > 0) v = mix(v, mix(m, own.map(digest).reduce(plus, 0)));
            }
            for (const one of items.map((item) => item.v).toSorted((a, b) => a - b)) v = mix(v, one);
            put(resultOf(common(items[0] as Item, spec.keys), 'total', v), endMs);
          }
        },
      };
    }),
};

interface Ruled extends KeySpec {
  readonly delayMs: number;
}

/** A record asks, some time later, which of the broadcast records are of that time or before. */
const broadcast: Kind<Ruled> = {
  name: 'broadcast',
  inputs: 2,
  draft(random: Random, inputs) {
    if (!timersKnown(inputs)) return undefined;
    const spec = { ...draftKey(random, inputs), delayMs: random.below(200) };
    return { spec, outputs: [timed(inputs, spec)] };
  },
  build(spec, streams, uid) {
    return [
      keyed(spec, one(streams)).connectBroadcast(two(streams), {
        uid,
        execution: spec.execution,
        broadcast: { times: map(int64, int64) },
        state: { of: value(itemCodec) },
        output: itemCodec,
        onBroadcast(rule, maps, ctx) {
          maps.times.set(ctx.timestampMs, plus(maps.times.get(ctx.timestampMs) ?? 0, digest(rule)));
        },
        onRecord(item, _maps, ctx) {
          ctx.state.of.set(resultOf(common(item, spec.keys), 'rules', 0));
          ctx.timers.at(ctx.timestampMs + spec.delayMs);
        },
        async onTimer(timeMs, maps, ctx) {
          const of = await ctx.state.of.get();
          await pause(timeMs);
          const sums = [...maps.times].filter(([ruleMs]) => ruleMs <= timeMs).map(([, sum]) => sum);
          ctx.emit({ ...(of ?? nothing), v: sums.reduce(plus, 0) });
        },
      }),
    ];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const asked = new Map<string, { readonly of: Item; readonly timeMs: number }>();
      const rules: { readonly item: Item; readonly timeMs: number }[] = [];
      return {
        record(item, timeMs, { input }) {
          if (input === 1) return void rules.push({ item, timeMs });
          const atMs = timeMs + spec.delayMs;
          const of = resultOf(common(item, spec.keys), 'rules', 0);
          asked.set(`${keyText(item, spec.keys)} ${atMs}`, { of, timeMs: atMs });
        },
        watermark() {
          for (const { of, timeMs } of [...asked.values()].toSorted((a, b) => a.timeMs - b.timeMs)) {
            const known = rules.filter((rule) => rule.timeMs <= timeMs);
            put({ ...of, v: known.map(({ item }) => digest(item)).reduce(plus, 0) }, timeMs);
          }
        },
      };
    }),
};

/** Without a key: what every subtask holds alike changes nothing of a record here, but is there. */
const plainBroadcast: Kind<Record<never, never>> = {
  name: 'broadcast-plain',
  inputs: 2,
  draft(_random, inputs) {
    const { order, time } = one(inputs);
    const safe = inputs.every((facts) => facts.time === 'safe');
    const sources = sourcesOf(inputs);
    return { spec: {}, outputs: [{ order, time: safe ? 'safe' : time === 'unknown' ? 'unknown' : 'late', sources }] };
  },
  build: (_spec, streams, uid) => [
    one(streams).connectBroadcast(two(streams), {
      uid,
      broadcast: { seen: map(int64, int64) },
      output: itemCodec,
      onBroadcast: (rule, maps) => maps.seen.set(rule.v, (maps.seen.get(rule.v) ?? 0) + 1),
      onRecord: (item, maps, ctx) => ctx.emit({ ...item, v: maps.seen.size >= 0 ? plus(item.v, 3) : -1 }),
    }),
  ],
  compute: (_spec, inputs) =>
    walk([one(inputs)], 1, (put) => ({ record: (item, t) => put({ ...item, v: plus(item.v, 3) }, t) })),
};

export const timerKinds: readonly Kind[] = [
  kind(buckets(1)),
  kind(buckets(2)),
  kind(totals),
  kind(broadcast),
  kind(plainBroadcast),
];
