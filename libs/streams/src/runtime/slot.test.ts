import { MillraceError } from '@millrace/kernel';
import { MemoryStateStore } from '@millrace/state';
import { noTelemetry, type Span, type SpanOptions, type Telemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import type { JobGraph, Partitioning } from '../graph/job-graph.ts';
import { testGraph } from '../testing/fixture-graph.ts';
import { jsonCodec, PassOperator } from '../testing/fixture-operators.ts';
import { LocalCluster, type LocalClusterOptions } from '../testing/local-cluster.ts';
import type { OperatorContext, OperatorPart, Poll, SourceOperator } from './operator.ts';

const forward: Partitioning = { kind: 'forward' };
const rebalance: Partitioning = { kind: 'rebalance' };

/** Emits 0, 1, 2 … up to `end`, then ends, or waits for ever. */
class Numbers extends PassOperator implements SourceOperator {
  next = 0;
  readonly #end: number;
  readonly #then: 'end' | 'wait';

  constructor(end: number, then: 'end' | 'wait' = 'end') {
    super();
    this.#end = end;
    this.#then = then;
  }
  poll(recordsMax: number): Poll {
    for (let i = 0; i < recordsMax && this.next < this.#end; i++) this.context.output.emit(this.next, this.next++);
    if (this.next < this.#end) return 'more';
    return this.#then === 'end' ? 'end' : new Promise(() => undefined);
  }
  override async snapshot(): Promise<OperatorPart> {
    return { list: [this.next] };
  }
}

/** Remembers everything that it is told. */
class Recorder extends PassOperator {
  readonly log: unknown[];
  closed = 0;
  constructor(log: unknown[] = []) {
    super();
    this.log = log;
  }
  override record(value: unknown): void | Promise<void> {
    this.log.push(value);
  }
  override watermark(watermarkMs: number): void {
    this.log.push(`w${watermarkMs}`);
  }
  override status(idle: boolean): void {
    this.log.push(idle ? 'idle' : 'active');
  }
  override async close(): Promise<void> {
    this.closed++;
  }
}

function start(graph: JobGraph, options: Partial<LocalClusterOptions> = {}): Promise<LocalCluster> {
  return LocalCluster.start({ graph: () => graph, store: new MemoryStateStore(), ...options });
}

async function turns(count = 50): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + 30_000;
  while (!condition() && Date.now() < endMs) await new Promise((resolve) => setImmediate(resolve));
  expect(condition()).toBe(true);
}

describe('the end of a bounded input', () => {
  it('brings every record, then the watermark +∞ once, and barriers go on to pass', async () => {
    const log: unknown[] = [];
    const graph = testGraph({ source: () => new Numbers(5), sink: () => new Recorder(log) }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);
    const cluster = await start(graph);
    await until(() => cluster.stats().every((slot) => slot.ended));
    expect(log).toEqual([0, 1, 2, 3, 4, 'wInfinity']);
    expect((await cluster.checkpoint()).ended).toBe(true);
    const last = await cluster.checkpoint();
    expect(last.ended).toBe(true);
    await cluster.complete(last);
    await cluster.done;
    await cluster.complete(last);
    expect(log).toHaveLength(6);
  });

  it('is not announced while another slot still has input', async () => {
    const graph = testGraph({ source: () => new OneEnds(), sink: () => new Recorder() }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);
    const cluster = await start(graph, { parallelism: 2 });
    await turns();
    expect((await cluster.checkpoint()).ended).toBe(false);
    await cluster.kill();
  });

  class OneEnds extends PassOperator implements SourceOperator {
    poll(): Poll {
      return this.context.subtask === 0 ? 'end' : new Promise(() => undefined);
    }
  }
});

describe('backpressure', () => {
  it('a sink that stands still bounds what its sources emit and what is under way', async () => {
    const sources: Numbers[] = [];
    const source = (): Numbers => {
      const made = new Numbers(1_000_000);
      sources.push(made);
      return made;
    };
    class Stuck extends Recorder {
      override record(): Promise<void> {
        return new Promise(() => undefined);
      }
    }
    // One key: all records go to one slot, from the other through a remote channel.
    const oneKey: Partitioning = { kind: 'hash', key: () => 1, keyCodec: jsonCodec };
    const graph = testGraph({ source, sink: () => new Stuck() }, [
      { from: 'source', to: 'sink', partitioning: oneKey },
    ]);
    const settings = { frameBytes: 200, channelWindowBytes: 1000 };
    const cluster = await start(graph, { parallelism: 2, settings });
    await turns(200);
    const emitted = sources.map((one) => one.next);
    await turns(200);
    expect(sources.map((one) => one.next)).toEqual(emitted);
    expect(Math.max(...emitted)).toBeLessThan(1000);
    expect(cluster.network.overdrawnBytesMax).toBeLessThanOrEqual(200 + 30);
    await cluster.kill();
  });

  it('lets a record that nothing follows go to the other slot after the frame delay', async () => {
    const logs: unknown[][] = [];
    const sink = (): Recorder => {
      const made = new Recorder();
      logs.push(made.log);
      return made;
    };
    const graph = testGraph({ source: () => new Numbers(3, 'wait'), sink }, [
      { from: 'source', to: 'sink', partitioning: { kind: 'broadcast' } },
    ]);
    const cluster = await start(graph, { parallelism: 2 });
    await until(() => logs.filter((log) => log.length === 6).length === 2);
    expect(
      logs
        .flat()
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    await cluster.kill();
  });
});

describe('a failure', () => {
  class Failing extends PassOperator {
    readonly #how: 'throws' | 'rejects' | 'reports';
    constructor(how: 'throws' | 'rejects' | 'reports') {
      super();
      this.#how = how;
    }
    override record(value: unknown): void | Promise<void> {
      if (value !== 3) return;
      const error = new Error('three is bad');
      if (this.#how === 'rejects') return Promise.reject(error);
      if (this.#how === 'throws') throw error;
      this.context.fail(error);
    }
  }

  for (const how of ['throws', 'rejects', 'reports'] as const) {
    for (const partitioning of [forward, rebalance]) {
      it(`names the operator that ${how} (${partitioning.kind})`, async () => {
        const sinks: Recorder[] = [];
        const sink = (): Recorder => {
          const made = new Recorder();
          sinks.push(made);
          return made;
        };
        const graph = testGraph({ source: () => new Numbers(10), bad: () => new Failing(how), sink }, [
          { from: 'source', to: 'bad', partitioning },
          { from: 'bad', to: 'sink', partitioning: forward },
        ]);
        const cluster = await start(graph);
        await expect(cluster.done).rejects.toMatchObject({
          code: 'operator-failed',
          details: { operator: 'bad', subtask: 0 },
          message: expect.stringContaining('three is bad'),
        });
        await expect(cluster.checkpoint()).rejects.toMatchObject({ code: 'operator-failed' });
        // `testGraph` makes one of each to look at, which is never opened.
        expect(sinks.map((one) => one.closed)).toEqual([0, 1]);
      });
    }
  }

  it('keeps the code of an error of Millrace, so that a fenced attempt is seen as fenced', async () => {
    class Fenced extends PassOperator {
      override record(): void {
        throw new MillraceError('attempt-fenced', 'a newer one runs');
      }
    }
    const graph = testGraph({ source: () => new Numbers(1), bad: () => new Fenced() }, [
      { from: 'source', to: 'bad', partitioning: forward },
    ]);
    const cluster = await start(graph);
    await expect(cluster.done).rejects.toMatchObject({ kind: 'fenced', details: { operator: 'bad' } });
  });

  it('of one operator at opening closes those that are open', async () => {
    const recorder = new Recorder();
    class Unopenable extends PassOperator {
      override open(): void {
        throw new Error('no such table');
      }
    }
    const graph = testGraph({ source: () => new Numbers(1), a: () => recorder, b: () => new Unopenable() }, [
      { from: 'source', to: 'a', partitioning: forward },
      { from: 'source', to: 'b', partitioning: forward },
    ]);
    await expect(start(graph)).rejects.toMatchObject({ details: { operator: 'b' } });
    expect(recorder.closed).toBe(1);
  });

  it('of a peer ends the slot with the name of the peer', async () => {
    const graph = testGraph({ source: () => new Numbers(1, 'wait'), sink: () => new Recorder() }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);
    const cluster = await start(graph, { parallelism: 2 });
    cluster.network.break(1, new Error('gone'));
    await expect(cluster.done).rejects.toMatchObject({ code: 'channel-broken', details: { peerSlot: 1 } });
  });
});

describe('a checkpoint round', () => {
  const graph = (): JobGraph =>
    testGraph({ source: () => new Numbers(3, 'wait'), sink: () => new Recorder() }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);

  it('is one round however often it is asked for', async () => {
    const cluster = await start(graph());
    const [slot] = cluster.slots;
    const answers = await Promise.all([1, 1, 1].map(async (checkpoint) => slot?.checkpoint({ checkpoint })));
    expect(answers[1]).toBe(answers[0]);
    expect(await slot?.checkpoint({ checkpoint: 1 })).toBe(answers[0]);
    await cluster.kill();
  });

  it('that a slot never heard of is given up by the next one', async () => {
    const cluster = await start(graph(), { parallelism: 2 });
    const lost = cluster.slots[0]?.checkpoint({ checkpoint: 1 });
    await turns();
    const next = await Promise.all(cluster.slots.map((slot) => slot.checkpoint({ checkpoint: 2 })));
    expect(next.map((one) => one.checkpoint)).toEqual([2, 2]);
    await expect(lost).rejects.toMatchObject({ code: 'checkpoint-aborted' });
    await expect(cluster.slots[0]?.checkpoint({ checkpoint: 1 })).rejects.toMatchObject({ code: 'checkpoint-aborted' });
    await cluster.kill();
  });

  it('that was aborted holds no record back', async () => {
    const logs: unknown[][] = [];
    const open = Promise.withResolvers<void>();
    class Later extends Numbers {
      #opened = false;
      override poll(recordsMax: number): Poll {
        if (this.#opened || this.context.subtask === 1) return super.poll(recordsMax);
        this.#opened = true;
        return open.promise;
      }
    }
    const sink = (): Recorder => {
      const made = new Recorder();
      logs.push(made.log);
      return made;
    };
    const late = testGraph({ source: () => new Later(4, 'wait'), sink }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);
    const cluster = await start(late, { parallelism: 2 });
    const lost = cluster.slots[0]?.checkpoint({ checkpoint: 1 });
    lost?.catch(() => undefined);
    await turns();
    open.resolve();
    await turns();
    expect(logs.flat()).toHaveLength(4);
    cluster.abort(1);
    await until(() => logs.flat().length === 8);
    await expect(lost).rejects.toMatchObject({ code: 'checkpoint-aborted' });
    await cluster.kill();
  });

  class Snapshotting extends Recorder {
    readonly #error: MillraceError;
    constructor(error: MillraceError) {
      super();
      this.#error = error;
    }
    override async snapshot(checkpoint: number): Promise<OperatorPart> {
      if (checkpoint === 1) throw this.#error;
      return {};
    }
  }

  it('fails alone when a store could not be reached, and the next succeeds', async () => {
    const error = new MillraceError('dfs-unavailable', 'no answer');
    const cluster = await start(
      testGraph({ source: () => new Numbers(3, 'wait'), sink: () => new Snapshotting(error) }, [
        { from: 'source', to: 'sink', partitioning: forward },
      ]),
    );
    await expect(cluster.checkpoint()).rejects.toMatchObject({ code: 'dfs-unavailable' });
    expect((await cluster.checkpoint()).checkpoint).toBe(2);
    await cluster.kill();
  });

  it('fails the attempt when the store says that a newer one runs', async () => {
    const error = new MillraceError('state-fenced', 'a newer one runs');
    const cluster = await start(
      testGraph({ source: () => new Numbers(3, 'wait'), sink: () => new Snapshotting(error) }, [
        { from: 'source', to: 'sink', partitioning: forward },
      ]),
    );
    await expect(cluster.checkpoint()).rejects.toMatchObject({ kind: 'fenced' });
    await expect(cluster.done).rejects.toMatchObject({ kind: 'fenced' });
  });

  it('drains again what an operator got after it had been drained', async () => {
    const heads: Timed[] = [];
    let taken = 0;
    /** Emits once more while the operator behind it is being drained, as a processing-time timer may. */
    class Timed extends PassOperator {
      emitted = 0;
      override open(context: OperatorContext): void {
        this.context = context;
        heads.push(this);
      }
      override record(value: unknown, timestampMs: number): void {
        this.emitted++;
        this.context.output.emit(value, timestampMs);
      }
      override async snapshot(): Promise<OperatorPart> {
        return { list: [this.emitted] };
      }
    }
    class Slow extends PassOperator {
      #drains = 0;
      override record(): Promise<void> {
        return new Promise((resolve) => setTimeout(resolve, 2)).then(() => void taken++);
      }
      override async drain(): Promise<void> {
        if (this.#drains++ > 2) return;
        await turns(2);
        heads.at(-1)?.record('timer', 0);
      }
      override async snapshot(): Promise<OperatorPart> {
        return { list: [taken] };
      }
    }
    const chain = testGraph({ source: () => new Numbers(3, 'wait'), head: () => new Timed(), slow: () => new Slow() }, [
      { from: 'source', to: 'head', partitioning: rebalance },
      { from: 'head', to: 'slow', partitioning: forward },
    ]);
    const cluster = await start(chain);
    await turns();
    const { operators } = await cluster.checkpoint();
    const lists = Object.fromEntries(operators.map((part) => [part.operator, part.list]));
    expect(lists.slow).toEqual(lists.head);
    expect(lists.head).toEqual([6]);
    await cluster.kill();
  });

  it('is one trace: align, drain and flush below the barrier’s span', async () => {
    const spans: Array<{ name: string; parent: string | undefined }> = [];
    const tracer: Telemetry['tracer'] = {
      span: (name, options: SpanOptions, work) => {
        spans.push({ name, parent: options.parent });
        const span: Span = { context: `${name} ${String(options.attributes?.operator)}`, set: () => undefined };
        return work(span);
      },
      record: (name, options) => void spans.push({ name, parent: options.parent }),
    };
    const cluster = await start(graph(), { telemetry: { ...noTelemetry, tracer } });
    await cluster.slots[0]?.checkpoint({ checkpoint: 1, parent: 'round' });
    expect(spans.filter((span) => span.name === 'subtask.checkpoint').map((span) => span.parent)).toEqual([
      'round',
      'round',
    ]);
    const below = spans.filter((span) => span.parent === 'subtask.checkpoint sink').map((span) => span.name);
    expect(below).toEqual(['subtask.align', 'subtask.drain', 'subtask.flush']);
    await cluster.kill();
  });
});

describe('a cancelled slot', () => {
  it('closes its operators once and says why it ended', async () => {
    const recorder = new Recorder();
    const graph = testGraph({ source: () => new Numbers(3, 'wait'), sink: () => recorder }, [
      { from: 'source', to: 'sink', partitioning: forward },
    ]);
    const cluster = await start(graph);
    const round = cluster.slots[0]?.checkpoint({ checkpoint: 1 });
    round?.catch(() => undefined);
    await Promise.all([cluster.kill(), cluster.kill()]);
    await expect(cluster.done).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(round).rejects.toMatchObject({ kind: 'cancelled' });
    expect(recorder.closed).toBe(1);
  });
});

describe('a barrier with which the attempt stops', () => {
  const graphOf = (log: unknown[]): JobGraph =>
    testGraph({ source: () => new Numbers(Number.POSITIVE_INFINITY), sink: () => new Recorder(log) }, [
      { from: 'source', to: 'sink', partitioning: rebalance },
    ]);

  it('is the last thing that sources read: everything before it is processed, nothing behind it', async () => {
    const log: unknown[] = [];
    const cluster = await start(graphOf(log), { parallelism: 2 });
    await until(() => log.length > 500);
    const checkpoint = await cluster.checkpoint(undefined, true);
    const processed = log.length;
    const positions = checkpoint.operators.filter((part) => part.operator === 'source').flatMap((part) => part.list);
    await turns();
    expect(log).toHaveLength(processed);
    expect(positions.reduce<number>((sum, next) => sum + (next as number), 0)).toBe(processed);
    await cluster.stop(checkpoint);
    expect(log).toHaveLength(processed);
  });

  it('lets sources read on when its round is aborted, and also when only a later barrier tells of it', async () => {
    const log: unknown[] = [];
    const cluster = await start(graphOf(log), { parallelism: 2 });
    const first = await cluster.checkpoint(undefined, true);
    const before = log.length;
    cluster.abort(first.checkpoint);
    await until(() => log.length > before + 100);
    await cluster.checkpoint(undefined, true);
    const again = log.length;
    await cluster.checkpoint();
    await until(() => log.length > again + 100);
    await cluster.kill();
    await expect(cluster.done).rejects.toMatchObject({ code: 'cancelled' });
  });
});

it('inputs that are ended from outside end as bounded ones do, also while the source waits', async () => {
  const log: unknown[] = [];
  const graph = testGraph({ source: () => new Numbers(5, 'wait'), sink: () => new Recorder(log) }, [
    { from: 'source', to: 'sink', partitioning: rebalance },
  ]);
  const cluster = await start(graph);
  await until(() => log.length === 5);
  for (const slot of cluster.slots) slot.endInputs();
  expect((await cluster.finish()).ended).toBe(true);
  expect(log).toEqual([0, 1, 2, 3, 4, 'wInfinity']);
});
