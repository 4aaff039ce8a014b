import { type Random, SeededRandom } from '@millrace/kernel';
import { msgpack } from '@millrace/state';
import type { Flow } from '../api/flow.ts';
import type { Source, SourceReader, Split, SplitPosition } from '../api/source.ts';
import type { Stream } from '../api/stream.ts';
import { boundedOutOfOrderness, perRecord } from '../api/watermarks.ts';
import type { Poll } from '../runtime/operator.ts';
import { generator } from '../sources/generator.ts';
import type { Item } from './item.ts';
import { pick } from './key.ts';
import type { Line } from './node.ts';

export interface SourceSpec {
  readonly source: number;
  readonly kind: 'splits' | 'generator';
  readonly splits: number;
  readonly disorderMs: number;
  /** Some records say what the watermark is, which later ones may be behind. */
  readonly exact: boolean;
  readonly seed: number;
  readonly records: number;
  readonly keys: number;
  readonly many: number;
}

export function draftSource(random: Random, source: number, exact: boolean, recordsMax: number): SourceSpec {
  return {
    source,
    kind: exact || random.below(2) === 0 ? 'splits' : 'generator',
    splits: exact ? 1 : 1 + random.below(4),
    disorderMs: random.below(2) * random.below(60),
    exact,
    seed: random.nextU32(),
    records: random.below(recordsMax),
    keys: 1 + random.below(6),
    many: 1 + random.below(4),
  };
}

interface Read {
  readonly item: Item;
  readonly timeMs: number;
  readonly watermarkMs: number | undefined;
}

/** What the source reads, by split. Numbers of lanes are unlike those of every other source. */
function readsOf(spec: SourceSpec): readonly (readonly Read[])[] {
  const random = new SeededRandom(spec.seed);
  const splits = Array.from({ length: spec.splits }, (): Read[] => []);
  for (let i = 0; i < spec.records; i++) {
    const split = spec.kind === 'generator' ? Math.floor(i / 64) % spec.splits : random.below(spec.splits);
    const timeMs = i * 10 - random.below(spec.disorderMs + 1);
    const lane = spec.source * 100 + split + random.below(2) * 10;
    const item = {
      id: `${spec.source}:${i}`,
      lane,
      k: random.below(spec.keys),
      m: random.below(spec.many),
      v: random.below(1000),
    };
    const says = spec.exact && random.below(6) === 0;
    splits[split]?.push({ item, timeMs, watermarkMs: says ? timeMs - random.below(60) : undefined });
  }
  return splits;
}

/** The records of the source, in an order in which they may come. */
export function linesOf(spec: SourceSpec): readonly Line[] {
  return readsOf(spec)
    .flat()
    .flatMap(({ item, timeMs, watermarkMs }): Line[] => {
      const line = { item, timeMs };
      return watermarkMs === undefined ? [line] : [line, { watermarkMs }];
    });
}

export function buildSource(flow: Flow, spec: SourceSpec, uid: string): Stream<Item> {
  const splits = readsOf(spec);
  const reads = new Map(splits.flat().map((read) => [read.item.id, read]));
  const read = ({ id }: Item): Read => reads.get(id) as Read;
  const watermarks = spec.exact
    ? perRecord<Item>((item) => read(item).watermarkMs)
    : boundedOutOfOrderness(spec.disorderMs, { interval: 0 });
  const options = { uid, timestamp: (item: Item) => read(item).timeMs, watermarks };
  if (spec.kind === 'splits') return flow.from(splitSource(splits, spec.seed), options);
  const all = [...reads.values()].toSorted((a, b) => indexOf(a) - indexOf(b));
  const record = (i: number): Item => (all[i] as Read).item;
  return flow.from(generator({ record, records: all.length, splits: spec.splits, codec: msgpack<Item>() }), options);
}

function indexOf({ item }: Read): number {
  return Number(item.id.split(':')[1]);
}

function splitSource(splits: readonly (readonly Read[])[], seed: number): Source<Item> {
  return {
    kind: 'splits',
    codec: msgpack<Item>(),
    splits: async () => splits.map((_, order) => ({ id: `s${order}`, order, data: order })),
    open: async (positions) => new SplitReader(splits, positions, new SeededRandom(seed)),
  };
}

/** Reads its splits by turns, some records at a time, and sometimes has nothing for a moment. */
class SplitReader implements SourceReader<Item> {
  readonly #splits: readonly (readonly Read[])[];
  readonly #random: Random;
  readonly #cursors: { readonly split: Split; position: number }[];

  constructor(splits: readonly (readonly Read[])[], positions: readonly SplitPosition[], random: Random) {
    this.#splits = splits;
    this.#random = random;
    this.#cursors = positions.map((one) => ({ ...one }));
  }

  read(recordsMax: number, emit: (item: Item, split?: Split) => void): Poll {
    const open = this.#open();
    if (open.length === 0) return 'end';
    if (this.#random.below(4) === 0) return new Promise((resolve) => setImmediate(resolve));
    const cursor = pick(this.#random, open);
    const reads = this.#readsOf(cursor.split);
    for (let left = this.#random.below(Math.min(recordsMax, 12) + 1); left > 0; left--) {
      const read = reads[cursor.position];
      if (read === undefined) break;
      cursor.position++;
      emit(read.item, cursor.split);
    }
    return 'more';
  }

  openSplits(): readonly Split[] {
    return this.#open().map(({ split }) => split);
  }

  positions(): readonly SplitPosition[] {
    return this.#cursors.map(({ split, position }) => ({ split, position }));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #open(): { readonly split: Split; position: number }[] {
    return this.#cursors.filter(({ split, position }) => position < this.#readsOf(split).length);
  }

  #readsOf({ data }: Split): readonly Read[] {
    return this.#splits[data as number] ?? [];
  }
}
