import type { Random } from '@millrace/kernel';
import type { KeyValue } from '@millrace/state';
import type { JoinKind, OuterKind } from '../api/joins.ts';
import type { KeyedStream } from '../api/keyed-stream.ts';
import type { Stream } from '../api/stream.ts';
import { cumulative, session, sliding, tumbling } from '../api/windows.ts';
import { common, type Item, itemCodec, mix, nothing, resultOf } from './item.ts';
import { draftKey, isOrdered, type KeySpec, keyed, keyText, pick } from './key.ts';
import { type Facts, type Kind, kind, type Line, one, sourcesOf, two } from './node.ts';
import { recordsOf } from './walk.ts';

type Timed = ReturnType<typeof recordsOf>[number];
type Sides = readonly [left: readonly Timed[], right: readonly Timed[]];

const kinds: readonly JoinKind[] = ['inner', 'left', 'right', 'full'];

function paired({ keys }: KeySpec, left: Item | undefined, right: Item | undefined): Item {
  const id = `${left?.id ?? '-'}&${right?.id ?? '-'}`;
  return resultOf(common(left ?? right ?? nothing, keys), id, mix(left?.v ?? -1, right?.v ?? -1));
}

function sidesOf(
  spec: KeySpec,
  streams: readonly Stream<Item>[],
): [KeyedStream<KeyValue, Item>, KeyedStream<KeyValue, Item>] {
  return [keyed(spec, one(streams)), keyed(spec, two(streams))];
}

/** Both sides of each key. */
function byKey({ keys }: KeySpec, inputs: readonly (readonly Line[])[]): Sides[] {
  const [lefts, rights] = inputs.map((lines) => Map.groupBy(recordsOf(lines), ({ item }) => keyText(item, keys)));
  const all = new Set([...(lefts?.keys() ?? []), ...(rights?.keys() ?? [])]);
  return [...all].map((key): Sides => [lefts?.get(key) ?? [], rights?.get(key) ?? []]);
}

/** The pairs that match, and by kind what has no partner. */
function matches(
  join: JoinKind,
  [lefts, rights]: Sides,
  match: (left: Timed, right: Timed) => boolean,
): [Timed | undefined, Timed | undefined][] {
  const rows = lefts.flatMap((l) => rights.filter((r) => match(l, r)).map((r): [Timed, Timed] => [l, r]));
  const alone: [Timed | undefined, Timed | undefined][] = [];
  if (join === 'left' || join === 'full') {
    for (const l of lefts) if (!rights.some((r) => match(l, r))) alone.push([l, undefined]);
  }
  if (join === 'right' || join === 'full') {
    for (const r of rights) if (!lefts.some((l) => match(l, r))) alone.push([undefined, r]);
  }
  return [...rows, ...alone];
}

function bothSafe(inputs: readonly Facts[]): boolean {
  return inputs.every(({ time }) => time === 'safe');
}

interface Near extends KeySpec {
  readonly join: JoinKind;
  readonly lower: number;
  readonly upper: number;
  readonly latenessMs: number;
}

const interval: Kind<Near> = {
  name: 'interval-join',
  inputs: 2,
  draft(random, inputs) {
    if (!bothSafe(inputs)) return undefined;
    const lower = random.below(200) - 150;
    const spec = {
      ...draftKey(random, inputs),
      join: pick(random, kinds),
      lower,
      upper: lower + random.below(150),
      latenessMs: random.below(2) * random.below(100),
    };
    return { spec, outputs: [{ order: undefined, time: 'safe', sources: sourcesOf(inputs) }] };
  },
  build(spec, streams, uid) {
    const { join, lower, upper, execution } = spec;
    const [left, right] = sidesOf(spec, streams);
    return [
      left.intervalJoin(right, {
        uid,
        execution,
        kind: join as 'full',
        lower,
        upper,
        allowedLateness: spec.latenessMs,
        left: itemCodec,
        right: itemCodec,
        output: itemCodec,
        pair: (l, r) => paired(spec, l, r),
      }),
    ];
  },
  compute(spec, inputs) {
    const { lower, upper, latenessMs } = spec;
    const near = (l: Timed, r: Timed): boolean => r.timeMs - l.timeMs >= lower && r.timeMs - l.timeMs <= upper;
    /** A pair has the later time; what is alone the time when that is certain. */
    const timeOf = (l: Timed | undefined, r: Timed | undefined): number => {
      if (l !== undefined && r !== undefined) return Math.max(l.timeMs, r.timeMs);
      if (l !== undefined) return l.timeMs + Math.max(0, upper) + latenessMs;
      return (r as Timed).timeMs + Math.max(0, -lower) + latenessMs;
    };
    return [
      byKey(spec, inputs).flatMap((sides) =>
        matches(spec.join, sides, near).map(([l, r]) => ({
          item: paired(spec, l?.item, r?.item),
          timeMs: timeOf(l, r),
        })),
      ),
    ];
  },
};

interface Windowed extends KeySpec {
  readonly join: JoinKind;
  readonly shape: 'tumbling' | 'sliding' | 'cumulative' | 'session';
  readonly sizeMs: number;
  readonly stepMs: number;
}

const windows: Kind<Windowed> = {
  name: 'window-join',
  inputs: 2,
  draft(random, inputs) {
    if (!bothSafe(inputs)) return undefined;
    const stepMs = 1 + random.below(80);
    const shape = pick(random, ['tumbling', 'sliding', 'cumulative', 'session'] as const);
    const sizeMs = shape === 'tumbling' || shape === 'session' ? stepMs : stepMs * (1 + random.below(3));
    const spec = { ...draftKey(random, inputs), join: pick(random, kinds), shape, sizeMs, stepMs };
    return { spec, outputs: [{ order: undefined, time: 'safe', sources: sourcesOf(inputs) }] };
  },
  build(spec, streams, uid) {
    const { join, sizeMs, stepMs, execution } = spec;
    const [left, right] = sidesOf(spec, streams);
    const shapes = {
      tumbling: tumbling(sizeMs),
      sliding: sliding(sizeMs, stepMs),
      cumulative: cumulative(sizeMs, stepMs),
      session: session<Item>(sizeMs),
    };
    return [
      left.windowJoin(right, shapes[spec.shape], {
        uid,
        execution,
        kind: join as 'full',
        left: itemCodec,
        right: itemCodec,
        output: itemCodec,
        pair: (l, r, _key, window) => ({ ...paired(spec, l, r), id: `${paired(spec, l, r).id}@${window.startMs}` }),
      }),
    ];
  },
  compute: (spec, inputs) => [
    byKey(spec, inputs).flatMap((sides) =>
      windowsOf(spec, sides).flatMap(([startMs, endMs]) => {
        const held = sides.map((side) => side.filter(({ timeMs }) => startMs <= timeMs && timeMs < endMs));
        return matches(spec.join, held as unknown as Sides, () => true).map(([l, r]) => {
          const pair = paired(spec, l?.item, r?.item);
          return { item: { ...pair, id: `${pair.id}@${startMs}` }, timeMs: endMs - 1 };
        });
      }),
    ),
  ],
};

/** Every window in which a record of these can be. */
function windowsOf({ shape, sizeMs, stepMs }: Windowed, sides: Sides): [number, number][] {
  const times = sides
    .flat()
    .map(({ timeMs }) => timeMs)
    .toSorted((a, b) => a - b);
  const found = new Map<string, [number, number]>();
  if (shape === 'session') {
    let last: [number, number] | undefined;
    for (const timeMs of times) {
      if (last !== undefined && timeMs < last[1]) last[1] = timeMs + sizeMs;
      else found.set(`${timeMs}`, (last = [timeMs, timeMs + sizeMs]));
    }
    return [...found.values()];
  }
  const everyMs = shape === 'sliding' ? stepMs : sizeMs;
  const step = shape === 'cumulative' ? stepMs : sizeMs;
  for (const timeMs of times) {
    const firstMs = Math.floor((timeMs - sizeMs) / everyMs) * everyMs;
    for (let startMs = firstMs; startMs <= timeMs; startMs += everyMs) {
      for (let endMs = startMs + step; endMs <= startMs + sizeMs; endMs += step)
        found.set(`${startMs} ${endMs}`, [startMs, endMs]);
    }
  }
  return [...found.values()];
}

/** When two records meet depends on which comes second, and so does the time of the pair. */
const inner: Kind<KeySpec> = {
  name: 'join',
  inputs: 2,
  draft(random, inputs) {
    if (!inputs.every(({ unique }) => unique)) return undefined;
    return {
      spec: draftKey(random, inputs),
      outputs: [{ order: undefined, time: 'unknown', sources: sourcesOf(inputs) }],
    };
  },
  build(spec, streams, uid) {
    const [left, right] = sidesOf(spec, streams);
    const side = { codec: itemCodec, id: (item: Item) => item.id };
    return [
      left.join(right, {
        uid,
        execution: spec.execution,
        left: side,
        right: side,
        output: itemCodec,
        pair: (l, r) => paired(spec, l, r),
      }),
    ];
  },
  compute: (spec, inputs) => [
    byKey(spec, inputs).flatMap((sides) =>
      matches('inner', sides, () => true).map(([l, r]) => ({ item: paired(spec, l?.item, r?.item), timeMs: 0 })),
    ),
  ],
};

interface Outer extends KeySpec {
  readonly join: OuterKind;
  /** Records of one key and `m` replace each other; else all stay. */
  readonly replaces: boolean;
}

/** Changes: in what order the table comes to be is not known, only what it is in the end. */
const outer: Kind<Outer> = {
  name: 'outer-join',
  inputs: 2,
  draft(random: Random, inputs) {
    const key = draftKey(random, inputs);
    const ordered = inputs.every((facts) => isOrdered(key, facts));
    if (!ordered && !inputs.every(({ unique }) => unique)) return undefined;
    const replaces = ordered && (random.below(2) === 0 || !inputs.every(({ unique }) => unique));
    const spec = { ...key, join: pick(random, ['left', 'right', 'full'] as const), replaces };
    return { spec, outputs: [{ order: key.keys, time: 'unknown', sources: sourcesOf(inputs), changes: true }] };
  },
  build(spec, streams, uid) {
    const [left, right] = sidesOf(spec, streams);
    const side = { codec: itemCodec, id: idOf(spec) };
    return [
      left
        .outerJoin(right, {
          uid,
          execution: spec.execution,
          kind: spec.join,
          left: side,
          right: side,
          output: itemCodec,
          pair: (l, r) => tableRow(spec, l, r),
        })
        .map(({ op, value }) => ({ ...value, v: op === 'insert' ? 1 : -1 })),
    ];
  },
  compute: (spec, inputs) => [
    byKey(spec, inputs).flatMap((sides) => {
      const last = sides.map((side) => [...new Map(side.map((one) => [idOf(spec)(one.item), one])).values()]);
      return matches(spec.join, last as unknown as Sides, () => true).map(([l, r]) => ({
        item: { ...tableRow(spec, l?.item, r?.item), v: 1 },
        timeMs: 0,
      }));
    }),
  ],
};

/** All of it in the id: its `v` will say whether it comes or goes. */
function tableRow(spec: KeySpec, left: Item | undefined, right: Item | undefined): Item {
  const pair = paired(spec, left, right);
  return { ...pair, id: `${pair.id}=${pair.v}` };
}

function idOf({ replaces }: Outer): (item: Item) => string {
  return replaces ? ({ m }) => `${m}` : ({ id }) => id;
}

export const joinKinds: readonly Kind[] = [kind(interval), kind(windows), kind(inner), kind(outer)];
