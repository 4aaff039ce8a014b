import type { Random } from '@millrace/kernel';
import { int64, type KeyValue, msgpack } from '@millrace/state';
import { sideTag } from '../api/side-tag.ts';
import type { Stream } from '../api/stream.ts';
import { trigger } from '../api/trigger.ts';
import type { WindowedStream } from '../api/windowed-stream.ts';
import { countWindow, cumulative, globalWindow, session, sliding, tumbling, type Window } from '../api/windows.ts';
import { common, digest, type Field, type Item, itemCodec, mix, nothing, plus, resultOf } from './item.ts';
import { draftKey, isOrdered, type KeySpec, keyed, keyText, pick } from './key.ts';
import { type Facts, type Kind, kind, one, type ResultFacts } from './node.ts';
import { pause } from './pause.ts';
import { walk } from './walk.ts';

const late = sideTag<Item>('late', msgpack<Item>());

/** What is made of the records of a window. */
interface Contents extends KeySpec {
  readonly fn: 'aggregate' | 'reduce' | 'process';
  /** The result depends on the order of the records. */
  readonly inOrder: boolean;
}

function draftContents(random: Random, key: KeySpec, inOrder: boolean): Contents {
  return { ...key, fn: pick(random, ['aggregate', 'reduce', 'process'] as const), inOrder };
}

function emitting(spec: Contents, windows: WindowedStream<KeyValue, Item, boolean>): Stream<Item> {
  const { fn, keys, inOrder } = spec;
  if (fn === 'reduce') return windows.reduce((a, b) => combine(a, b, inOrder), itemCodec);
  if (fn === 'process') {
    return windows.process({
      output: itemCodec,
      async process(records, ctx) {
        await pause(records.length);
        const all = result(spec, records, ctx.window);
        if (all !== undefined) ctx.emit(all);
      },
    });
  }
  return windows.aggregate({
    accumulator: itemCodec,
    output: itemCodec,
    create: () => nothing,
    add: (sum, item) => resultOf(common(item, keys), '', add(sum.v, item, inOrder)),
    merge: (left, right) => ({ ...left, v: plus(left.v, right.v) }),
    result: (sum, _key, { startMs }) => ({ ...sum, id: `w${startMs}` }),
  });
}

function add(sum: number, item: Item, inOrder: boolean): number {
  return inOrder ? mix(sum, digest(item)) : plus(sum, digest(item));
}

function combine(a: Item, b: Item, inOrder: boolean): Item {
  const v = inOrder ? mix(a.v, b.v) : plus(a.v, b.v);
  const least = (field: Field): number => Math.min(a[field], b[field]);
  return { id: a.id < b.id ? a.id : b.id, lane: least('lane'), k: least('k'), m: least('m'), v };
}

/** The same in one go, for the reference. */
function result(
  { fn, keys, inOrder }: Contents,
  items: readonly Item[],
  { startMs }: Pick<Window, 'startMs'>,
): Item | undefined {
  const [first] = items;
  if (first === undefined) return undefined;
  if (fn === 'reduce') return items.reduce((a, b) => combine(a, b, inOrder));
  const v = items.reduce((sum, item) => add(sum, item, inOrder), 0);
  return resultOf(common(first, keys), `w${startMs}`, v);
}

interface Timed extends Contents {
  readonly shape: 'tumbling' | 'sliding' | 'cumulative' | 'session';
  readonly sizeMs: number;
  /** Between starts, or ends; the gap of sessions is their size. */
  readonly stepMs: number;
  readonly offsetMs: number;
  readonly latenessMs: number;
  /** Emit at every so many records, too; 0: do not. */
  readonly early: number;
}

function draftTimed(random: Random, input: Facts): Timed | undefined {
  const key = draftKey(random, [input]);
  const ordered = isOrdered(key, input);
  const shape = pick(random, ['tumbling', 'sliding', 'cumulative', 'session'] as const);
  const exact = input.time === 'exact';
  if (input.time !== 'safe' && !exact) return undefined;
  // Which of two late records comes first decides what a window tells in between, and whether a session is still there.
  const [latenessMs, early] = ordered
    ? [random.below(2) * random.below(300), random.below(3) * random.below(4)]
    : [0, 0];
  if (exact && shape === 'session' && !ordered) return undefined;
  const stepMs = 1 + random.below(100);
  const sizeMs = shape === 'session' ? 1 + random.below(60) : stepMs * (shape === 'tumbling' ? 1 : 1 + random.below(3));
  return {
    ...draftContents(random, key, ordered && shape !== 'session'),
    shape,
    sizeMs: shape === 'sliding' ? sizeMs + random.below(stepMs) : sizeMs,
    stepMs,
    offsetMs: random.below(50),
    latenessMs,
    early,
  };
}

/** Windows of event time, of every shape. */
const timed: Kind<Timed> = {
  name: 'window',
  inputs: 1,
  draft(random, inputs) {
    const facts = one(inputs);
    const spec = draftTimed(random, facts);
    if (spec === undefined) return undefined;
    const { time, sources } = facts;
    // A session that has grown sets its timer anew, and is then after those whose timers were due with its old one.
    // Of the windows that one record makes tell something, any may be the first.
    const byEnd = spec.early === 0 && spec.latenessMs === 0;
    const inTime = spec.shape !== 'session' && (byEnd || (time === 'exact' && spec.shape === 'tumbling'));
    const order = inTime ? spec.keys : undefined;
    const main: ResultFacts = { order, time, sources };
    // A late record leaves at once, and may pass the watermark that came before it.
    const aside: ResultFacts = { order: isOrdered(spec, facts) ? spec.keys : undefined, time: 'late', sources };
    return { spec, outputs: [main, aside] };
  },
  build(spec, streams, uid) {
    const { sizeMs, stepMs, offsetMs, execution, early } = spec;
    const offset = { offset: offsetMs };
    const options = {
      uid,
      execution,
      allowedLateness: spec.latenessMs,
      late,
      ...(early > 0 ? { early: { records: early } } : {}),
    };
    const stream = keyed(spec, one(streams));
    const windows = {
      tumbling: () => stream.window(tumbling(sizeMs, offset), options),
      sliding: () => stream.window(sliding(sizeMs, stepMs, offset), options),
      cumulative: () => stream.window(cumulative(sizeMs, stepMs, offset), options),
      session: () => stream.window(session<Item>(sizeMs), options),
    }[spec.shape]();
    const main = emitting(spec, windows as WindowedStream<KeyValue, Item, boolean>);
    return [main, main.sideOutput(late)];
  },
  compute: (spec, inputs) => (spec.shape === 'session' ? sessions(spec, inputs) : fixed(spec, inputs)),
};

interface Open {
  readonly key: string;
  readonly startMs: number;
  endMs: number;
  items: Item[];
  sinceEarly: number;
  firedEndMs: number | undefined;
}

function holding({ shape, sizeMs, stepMs, offsetMs }: Timed, timeMs: number): [number, number][] {
  const everyMs = shape === 'sliding' ? stepMs : sizeMs;
  const [step, found] = [shape === 'cumulative' ? stepMs : sizeMs, [] as [number, number][]];
  const first = Math.floor((timeMs - sizeMs - offsetMs) / everyMs) * everyMs + offsetMs;
  for (let startMs = first; startMs <= timeMs; startMs += everyMs) {
    for (let endMs = startMs + step; endMs <= startMs + sizeMs; endMs += step) {
      if (startMs <= timeMs && timeMs < endMs) found.push([startMs, endMs]);
    }
  }
  return found;
}

const fixed = (spec: Timed, inputs: Parameters<Kind['compute']>[1]): ReturnType<Kind['compute']> =>
  walk(inputs, 2, (put) => {
    let open: Open[] = [];
    const emit = ({ items, startMs, endMs }: Open): void => put(result(spec, items, { startMs }) as Item, endMs - 1);
    return {
      record(item, timeMs, { watermarkMs }) {
        const key = keyText(item, spec.keys);
        let taken = false;
        for (const [startMs, endMs] of holding(spec, timeMs)) {
          if (endMs - 1 + spec.latenessMs <= watermarkMs) continue;
          taken = true;
          const over = endMs - 1 <= watermarkMs;
          let window = open.find((one) => one.key === key && one.startMs === startMs && one.endMs === endMs);
          if (window === undefined) {
            window = { key, startMs, endMs, items: [], sinceEarly: 0, firedEndMs: over ? endMs : undefined };
            open.push(window);
          }
          window.items.push(item);
          const early = ++window.sinceEarly === spec.early;
          if (early) window.sinceEarly = 0;
          if (early || over) emit(window);
        }
        if (!taken) put(item, timeMs, 1);
      },
      watermark(watermarkMs) {
        for (const window of open.toSorted((a, b) => a.endMs - b.endMs)) {
          if (window.firedEndMs !== undefined || window.endMs - 1 > watermarkMs) continue;
          window.firedEndMs = window.endMs;
          emit(window);
        }
        open = open.filter((window) => window.endMs - 1 + spec.latenessMs > watermarkMs);
      },
    };
  });

const sessions = (spec: Timed, inputs: Parameters<Kind['compute']>[1]): ReturnType<Kind['compute']> =>
  walk(inputs, 2, (put) => {
    let open: Open[] = [];
    const emit = ({ items, startMs, endMs }: Open): void => put(result(spec, items, { startMs }) as Item, endMs - 1);
    return {
      record(item, timeMs, { watermarkMs }) {
        const key = keyText(item, spec.keys);
        const met = open.filter((s) => s.key === key && s.startMs < timeMs + spec.sizeMs && timeMs < s.endMs);
        const startMs = Math.min(timeMs, ...met.map((s) => s.startMs));
        const endMs = Math.max(timeMs + spec.sizeMs, ...met.map((s) => s.endMs));
        if (endMs - 1 + spec.latenessMs <= watermarkMs) return put(item, timeMs, 1);
        const over = endMs - 1 <= watermarkMs;
        let sinceEarly = met.reduce((sum, s) => sum + s.sinceEarly, 1);
        const early = spec.early > 0 && sinceEarly >= spec.early;
        if (early) sinceEarly = 0;
        // That of the first of them, in the order of time.
        const [first] = met.toSorted((a, b) => a.startMs - b.startMs);
        const firedEndMs = over ? endMs : first?.firedEndMs;
        const next = { key, startMs, endMs, items: [...met.flatMap((s) => s.items), item], sinceEarly, firedEndMs };
        open = [...open.filter((s) => !met.includes(s)), next];
        if (early || over) emit(next);
      },
      watermark(watermarkMs) {
        for (const one of open.toSorted((a, b) => a.endMs - b.endMs)) {
          if (one.firedEndMs === one.endMs || one.endMs - 1 > watermarkMs) continue;
          one.firedEndMs = one.endMs;
          emit(one);
        }
        open = open.filter((s) => s.endMs - 1 + spec.latenessMs > watermarkMs);
      },
    };
  });

interface Counted extends Contents {
  readonly size: number;
  readonly every: number;
  readonly partialAtEnd: boolean;
}

/** The last time that a date can have: only the end of the input comes to it. */
const endMs = 8.64e15;
const allTime = { startMs: Number.NEGATIVE_INFINITY };

const counted: Kind<Counted> = {
  name: 'count-window',
  inputs: 1,
  draft(random, inputs) {
    const facts = one(inputs);
    const key = draftKey(random, inputs);
    if (!isOrdered(key, facts)) return undefined;
    const size = 1 + random.below(6);
    const every = random.below(2) === 0 ? size : 1 + random.below(6);
    const spec = { ...draftContents(random, key, true), size, every, partialAtEnd: random.below(2) === 0 };
    return { spec, outputs: [{ order: spec.keys, time: facts.time, sources: facts.sources }] };
  },
  build(spec, streams, uid) {
    const { size, every, partialAtEnd, execution } = spec;
    const windows = keyed(spec, one(streams)).window(countWindow(size, { every, partialAtEnd }), { uid, execution });
    return [emitting(spec, windows as WindowedStream<KeyValue, Item, boolean>)];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const seen = new Map<string, Item[]>();
      const { size, every } = spec;
      return {
        record(item, timeMs) {
          const key = keyText(item, spec.keys);
          const items = [...(seen.get(key) ?? []), item];
          seen.set(key, items);
          if (items.length % every === 0) put(result(spec, items.slice(-size), allTime) as Item, timeMs);
        },
        watermark(watermarkMs) {
          if (watermarkMs < endMs || !spec.partialAtEnd) return;
          for (const items of seen.values()) {
            const left = items.length % every;
            if (left > 0) put(result(spec, items.slice(every === size ? -left : -size), allTime) as Item, endMs);
          }
        },
      };
    }),
};

/** One window for ever; a trigger emits it, and lets it begin anew. */
const triggered: Kind<Contents> = {
  name: 'trigger',
  inputs: 1,
  draft(random, inputs) {
    const facts = one(inputs);
    const key = draftKey(random, inputs);
    if (!isOrdered(key, facts)) return undefined;
    const spec = draftContents(random, key, true);
    return { spec, outputs: [{ order: spec.keys, time: facts.time, sources: facts.sources }] };
  },
  build(spec, streams, uid) {
    const emitsAt = trigger<Item, number>({
      state: int64,
      create: () => 0,
      onRecord: (item, count) => ({ state: count + 1, emit: item.v % 3 === 0, clear: item.v % 6 === 0 }),
      onEnd: () => ({ emit: true }),
    });
    const windows = keyed(spec, one(streams)).window(globalWindow(), {
      uid,
      execution: spec.execution,
      trigger: emitsAt,
    });
    return [emitting(spec, windows as WindowedStream<KeyValue, Item, boolean>)];
  },
  compute: (spec, inputs) =>
    walk(inputs, 1, (put) => {
      const kept = new Map<string, Item[]>();
      return {
        record(item, timeMs) {
          const key = keyText(item, spec.keys);
          const items = [...(kept.get(key) ?? []), item];
          kept.set(key, item.v % 6 === 0 ? [] : items);
          if (item.v % 3 === 0) put(result(spec, items, allTime) as Item, timeMs);
        },
        watermark(watermarkMs) {
          if (watermarkMs < endMs) return;
          for (const items of kept.values()) if (items.length > 0) put(result(spec, items, allTime) as Item, endMs);
        },
      };
    }),
};

export const windowKinds: readonly Kind[] = [kind(timed), kind(counted), kind(triggered)];
