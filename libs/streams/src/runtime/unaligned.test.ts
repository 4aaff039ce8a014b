import { MillraceError } from '@millrace/kernel';
import { MemoryStateStore } from '@millrace/state';
import { afterEach, describe, expect, it } from 'vitest';
import type { JobGraph, Partitioning } from '../graph/job-graph.ts';
import { type EdgeSpec, testGraph } from '../testing/fixture-graph.ts';
import { jsonCodec, keyGroupOfNumber, PassOperator, Published, PublishingSink } from '../testing/fixture-operators.ts';
import { type ClusterCheckpoint, LocalCluster, type LocalClusterOptions } from '../testing/local-cluster.ts';
import { type InFlightFile, type InFlightFiles, type InFlightPlace, inFlightBytes } from './in-flight.ts';
import type { Operator, OperatorContext, OperatorPart, Poll, SourceOperator } from './operator.ts';

/** One key: all records go to one slot, from others through a channel between slots. */
const oneKey: Partitioning = { kind: 'hash', key: () => 1, keyCodec: jsonCodec };
const forward: Partitioning = { kind: 'forward' };
const rebalance: Partitioning = { kind: 'rebalance' };
const total = 400;

/** Subtask s of p emits s, s + p, s + 2p … below `total`; dealt anew at another parallelism. */
class Numbers extends PassOperator implements SourceOperator {
  emitted = 0;
  #left: number[] = [];

  override open(context: OperatorContext): void {
    this.context = context;
    const { subtask, parallelism } = context.slot;
    const all = Array.from({ length: total }, (_, n) => n).filter((n) => n % parallelism === subtask);
    this.#left = (context.restoredList as number[] | undefined)?.slice() ?? all;
  }

  poll(): Poll {
    const next = this.#left.shift();
    if (next === undefined) return 'end';
    this.emitted++;
    this.context.output.emit(next, next);
    return 'more';
  }

  override async snapshot(): Promise<OperatorPart> {
    return { list: [...this.#left] };
  }
}

/** All numbers in order, from one slot. */
class InOrder extends PassOperator implements SourceOperator {
  #next = total;

  override open(context: OperatorContext): void {
    this.context = context;
    const first = context.slot.subtask === 0 ? 0 : total;
    this.#next = context.restoredList === undefined ? first : ((context.restoredList[0] as number) ?? total);
  }

  poll(): Poll {
    if (this.#next === total) return 'end';
    this.context.output.emit(this.#next, this.#next++);
    return 'more';
  }

  override async snapshot(): Promise<OperatorPart> {
    return { list: this.#next === total ? [] : [this.#next] };
  }
}

/** Emits each record three times, so that two of them wait before a gate. */
class Thrice extends PassOperator {
  override record(value: unknown, timestampMs: number): void {
    for (let i = 0; i < 3; i++) this.context.output.emit((value as number) * 3 + i, timestampMs);
  }
}

/** Takes a record only as often as `let` says; then passes it on. */
class Gate extends PassOperator {
  static allowed = Number.POSITIVE_INFINITY;
  static taken = 0;
  static waiting: Array<() => void> = [];
  /** This one takes its time for each record. */
  static slowSlot: number | undefined;

  static let(count: number): void {
    Gate.allowed += count;
    for (const go of Gate.waiting.splice(0)) go();
  }

  override async record(value: unknown, timestampMs: number): Promise<void> {
    while (Gate.taken >= Gate.allowed) await new Promise<void>((resolve) => Gate.waiting.push(resolve));
    Gate.taken++;
    if (this.context.subtask === Gate.slowSlot) await turns(20);
    this.context.output.emit(value, timestampMs);
  }
}

function closeGate(): void {
  Gate.allowed = 0;
  Gate.taken = 0;
  Gate.waiting = [];
  Gate.slowSlot = undefined;
}

const settings = { frameBytes: 100, channelWindowBytes: 600, frameDelayMs: 1 };
let running: LocalCluster | undefined;

async function start(graph: () => JobGraph, options: Partial<LocalClusterOptions> = {}): Promise<LocalCluster> {
  running = await LocalCluster.start({
    graph,
    store: new MemoryStateStore(),
    maxParallelism: 16,
    settings,
    ...options,
  });
  return running;
}

afterEach(async () => {
  await running?.kill();
  await running?.done.catch(() => undefined);
});

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether a promise has settled after a while. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  promise.then(
    () => (settled = true),
    () => (settled = true),
  );
  await turns(60);
  return settled;
}

function places({ operators }: ClusterCheckpoint): Record<InFlightPlace, number> {
  const bytes = { in: 0, out: 0, chain: 0 };
  for (const { inFlight } of operators) for (const one of inFlight?.channels ?? []) bytes[one.place] += one.length;
  return bytes;
}

/** Source, gate, exactly-once sink. */
function gated(published: Published, edges: Partial<Record<'gate' | 'sink', Partitioning>> = {}): () => JobGraph {
  return () =>
    testGraph({ source: () => new Numbers(), gate: () => new Gate(), sink: () => new PublishingSink(published) }, [
      { from: 'source', to: 'gate', partitioning: edges.gate ?? oneKey },
      { from: 'gate', to: 'sink', partitioning: edges.sink ?? rebalance },
    ]);
}

/** Kills the cluster, opens the gate and runs to the end from `from`. */
async function finishFrom(
  from: ClusterCheckpoint,
  graph: () => JobGraph,
  parallelism: number,
  slowSlot?: number,
): Promise<void> {
  await running?.kill();
  await running?.done.catch(() => undefined);
  closeGate();
  Gate.allowed = Number.POSITIVE_INFINITY;
  Gate.slowSlot = slowSlot;
  await (await start(graph, { from, parallelism, generation: 2 })).finish();
}

const everyNumber = Array.from({ length: total }, (_, n) => n);
const sorted = (published: Published): number[] => (published.values as number[]).toSorted((a, b) => a - b);

describe('a barrier and an operator that stands still', () => {
  for (const parallelism of [1, 2]) {
    it(`unaligned, passes all that waits there; the record in hand is finished (${parallelism} slots)`, async () => {
      closeGate();
      const published = new Published();
      const cluster = await start(gated(published), { parallelism, overtakeAfterMs: 0 });
      await turns(100);
      const round = cluster.checkpoint();
      await turns(50);
      Gate.let(1);
      const checkpoint = await round;
      expect(Gate.taken).toBe(1);
      expect(places(checkpoint).in).toBeGreaterThan(0);
      // Between slots, frames that had no credit waited at the writer.
      expect(places(checkpoint).out > 0).toBe(parallelism === 2);
      await cluster.complete(checkpoint);
      await finishFrom(checkpoint, gated(published), 3 - parallelism);
      expect(sorted(published)).toEqual(everyNumber);
    });
  }

  it('aligned, waits behind all of them', async () => {
    closeGate();
    const cluster = await start(gated(new Published()));
    await turns(100);
    const round = cluster.checkpoint();
    Gate.let(3);
    expect(await settles(round)).toBe(false);
    round.catch(() => undefined);
  });

  it('waits as long as it is given, then passes: at the reader and at a writer without credit', async () => {
    closeGate();
    const published = new Published();
    const cluster = await start(gated(published), { parallelism: 2, overtakeAfterMs: 150 });
    await turns(100);
    const round = cluster.checkpoint();
    Gate.let(1);
    expect(await settles(round)).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 200));
    Gate.let(1);
    const checkpoint = await round;
    expect(Gate.taken).toBe(2);
    expect(places(checkpoint)).toMatchObject({ in: expect.any(Number), out: expect.any(Number) });
    expect(Math.min(places(checkpoint).in, places(checkpoint).out)).toBeGreaterThan(0);
    await cluster.complete(checkpoint);
    await finishFrom(checkpoint, gated(published), 3);
    expect(sorted(published)).toEqual(everyNumber);
  });

  it('given time, aligns when that is enough: nothing is stored', async () => {
    closeGate();
    Gate.let(1_000_000);
    const published = new Published();
    const cluster = await start(gated(published), { parallelism: 2, overtakeAfterMs: 60_000 });
    await turns(5);
    const checkpoint = await cluster.checkpoint();
    expect(checkpoint.operators.every(({ inFlight }) => inFlight === undefined)).toBe(true);
    await cluster.complete(checkpoint);
    await cluster.finish();
    expect(sorted(published)).toEqual(everyNumber);
  });

  it('passes what waits between the operators of a chain', async () => {
    closeGate();
    const published = new Published();
    const graph = (): JobGraph => {
      const sink = (): Operator => new PublishingSink(published);
      return testGraph({ source: () => new Numbers(), thrice: () => new Thrice(), gate: () => new Gate(), sink }, [
        { from: 'source', to: 'thrice', partitioning: oneKey },
        { from: 'thrice', to: 'gate', partitioning: forward },
        { from: 'gate', to: 'sink', partitioning: forward },
      ]);
    };
    const cluster = await start(graph, { overtakeAfterMs: 0 });
    await turns(50);
    const round = cluster.checkpoint();
    await turns(50);
    Gate.let(1);
    const checkpoint = await round;
    expect([Gate.taken, places(checkpoint).chain > 0]).toEqual([1, true]);
    await cluster.complete(checkpoint);
    await finishFrom(checkpoint, graph, 2);
    expect(sorted(published)).toEqual(Array.from({ length: 3 * total }, (_, n) => n));
  });
});

describe('a barrier that is long in coming from one input', () => {
  /** Emits for ever. */
  class Endless extends PassOperator implements SourceOperator {
    static emitted = 0;
    poll(recordsMax: number): Poll {
      for (let i = 0; i < recordsMax; i++) this.context.output.emit(Endless.emitted++, 0);
      return 'more';
    }
  }

  it('bounds what is copied of the others, and an abort lets them go on', async () => {
    Endless.emitted = 0;
    const edges: EdgeSpec[] = [{ from: 'source', to: 'sink', partitioning: oneKey }];
    const graph = (): JobGraph => testGraph({ source: () => new Endless(), sink: () => new PassOperator() }, edges);
    const cluster = await start(graph, { parallelism: 2 });
    await turns(50);
    // The barrier enters at one source only: channels of the other are copied and wait.
    const rounds = cluster.slots.slice(0, 1).map((slot) => slot.checkpoint({ checkpoint: 9, overtakeAfterMs: 0 }));
    for (const round of rounds) round.catch(() => undefined);
    await turns(300);
    const before = cluster.stats().map((slot) => slot.recordsIn);
    await turns(200);
    const stood = cluster.stats().map((slot, i) => slot.recordsIn === before[i]);
    expect(stood).toContain(true);
    cluster.abort(9);
    await turns(200);
    const after = cluster.stats().map((slot, i) => slot.recordsIn > (before[i] as number));
    expect(after).toEqual([true, true]);
    await Promise.all(rounds.map((round) => expect(round).rejects.toMatchObject({ code: 'checkpoint-aborted' })));
  });

  it('ends with the slot: whoever waits for the round hears of it', async () => {
    closeGate();
    const cluster = await start(gated(new Published()), { parallelism: 2 });
    await turns(100);
    const round = cluster.checkpoint(0);
    round.catch(() => undefined);
    await cluster.kill(new MillraceError('cancelled', 'fenced'));
    await expect(round).rejects.toMatchObject({ code: 'cancelled' });
  });
});

describe('records in flight in a checkpoint', () => {
  async function takeOne(more: Partial<LocalClusterOptions> = {}): Promise<ClusterCheckpoint> {
    closeGate();
    const cluster = await start(gated(new Published()), { overtakeAfterMs: 0, ...more });
    await turns(100);
    const round = cluster.checkpoint();
    await turns(50);
    Gate.let(1);
    return await round;
  }

  it('are a file when they are many', async () => {
    const stored = new Map<string, Uint8Array>();
    const inFlightFiles: InFlightFiles = {
      write: async ({ operator, subtask, checkpoint }, data): Promise<InFlightFile> => {
        const id = `${checkpoint}/${operator}/${subtask}`;
        stored.set(id, data.slice());
        return { id, sizeBytes: data.length, crc32: 0, holders: [id] };
      },
      read: async ({ id }) => stored.get(id) as Uint8Array,
    };
    const published = new Published();
    closeGate();
    const wide = { ...settings, channelWindowBytes: 1 << 20 };
    const source = (): Operator => new Numbers();
    // Records of 300 bytes.
    class Pad extends PassOperator {
      override record(value: unknown, timestampMs: number): void {
        this.context.output.emit(`${'x'.repeat(300)}${String(value)}`, timestampMs);
      }
    }
    const graph = (): JobGraph =>
      testGraph({ source, pad: () => new Pad(), gate: () => new Gate(), sink: () => new PublishingSink(published) }, [
        { from: 'source', to: 'pad', partitioning: forward },
        { from: 'pad', to: 'gate', partitioning: oneKey },
        { from: 'gate', to: 'sink', partitioning: rebalance },
      ]);
    const cluster = await start(graph, { settings: wide, overtakeAfterMs: 0, inFlightFiles });
    await turns(100);
    const round = cluster.checkpoint();
    await turns(50);
    Gate.let(1);
    const checkpoint = await round;
    expect([...stored.keys()]).toEqual(['1/gate/0']);
    const gatesPart = checkpoint.operators.find(({ operator }) => operator === 'gate');
    expect(gatesPart?.inFlight?.data).toBeUndefined();
    await cluster.complete(checkpoint);
    await cluster.kill();
    Gate.allowed = Number.POSITIVE_INFINITY;
    const again = await start(graph, { from: checkpoint, parallelism: 2, generation: 2, inFlightFiles });
    await again.finish();
    expect(new Set(published.values).size).toBe(total);
    expect(published.values).toHaveLength(total);
  });

  it('are refused by a job that has no such edge, and dropped when that is allowed', async () => {
    const from = await takeOne();
    await running?.kill();
    const graph = (): JobGraph =>
      testGraph({ source: () => new Numbers(), sink: () => new PublishingSink(new Published()) }, [
        { from: 'source', to: 'sink', partitioning: oneKey },
      ]);
    const withoutGate = { ...from, operators: from.operators.filter(({ operator }) => operator !== 'gate') };
    const gatesPart = from.operators.find(({ operator }) => operator === 'gate');
    expect(inFlightBytes(gatesPart?.inFlight)).toBeGreaterThan(0);
    await expect(start(graph, { from })).rejects.toMatchObject({ code: 'state-incompatible' });
    await (await start(graph, { from: withoutGate })).finish();
  });

  it('of a checkpoint restore into an aligned round, and that into an unaligned one', async () => {
    const published = new Published();
    closeGate();
    let from: ClusterCheckpoint | undefined;
    for (const [i, overtakeAfterMs] of [0, undefined, 0, 1].entries()) {
      closeGate();
      const cluster = await start(gated(published), { from, parallelism: 1 + (i % 2), generation: i + 1 });
      await turns(50);
      const round = cluster.checkpoint(overtakeAfterMs);
      for (let n = 0; n < 300 && !(await settles(round)); n++) Gate.let(40);
      from = await round;
      await cluster.complete(from);
      await cluster.kill();
    }
    await finishFrom(from as ClusterCheckpoint, gated(published), 2);
    expect(sorted(published)).toEqual(everyNumber);
  });
});

describe('a checkpoint whose barrier has overtaken records of one key in several places', () => {
  it('restores them in their order at another parallelism, where the places go to different slots', async () => {
    // Its owner is the last of three slots and of two; what waits in the chain of the third slot goes to the first.
    const key = Array.from({ length: 100 }, (_, n) => n).find((n) => keyGroupOfNumber(n, 16) > 11) as number;
    const ofKey: Partitioning = { kind: 'hash', key: () => key, keyCodec: jsonCodec };
    const published = new Published();
    const graph = (): JobGraph =>
      testGraph(
        {
          source: () => new InOrder(),
          thrice: () => new Thrice(),
          gate: () => new Gate(),
          sink: () => new PublishingSink(published),
        },
        [
          { from: 'source', to: 'thrice', partitioning: ofKey },
          { from: 'thrice', to: 'gate', partitioning: forward },
          { from: 'gate', to: 'sink', partitioning: ofKey },
        ],
      );
    closeGate();
    const cluster = await start(graph, { parallelism: 3 });
    Gate.let(3);
    await turns(60);
    const round = cluster.checkpoint(0);
    await turns(60);
    Gate.let(1);
    const checkpoint = await round;
    expect(places(checkpoint).chain).toBeGreaterThan(0);
    expect(places(checkpoint).in).toBeGreaterThan(0);
    await finishFrom(checkpoint, graph, 2, 0);
    expect(published.values).toEqual(Array.from({ length: total * 3 }, (_, n) => n));
  });
});
