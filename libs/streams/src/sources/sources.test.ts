import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '@millrace/kernel/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import type { Source } from '../api/source.ts';
import { monotonous } from '../api/watermarks.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { TestRun } from '../testing/test-run.ts';
import { generator } from './generator.ts';
import { jsonLinesFiles } from './json-lines.ts';
import { parquetFiles } from './parquet.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sources-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function graphOf<T>(source: Source<T>, into: T[]): JobGraph {
  return buildGraph(job('source', (flow) => flow.from(source, { uid: 'source' }).to(collect(into))));
}

/** Reads a while at one parallelism, restores at each of the others in turn, and returns everything that was emitted. */
async function acrossRestores<T>(source: Source<T>, parallelisms: readonly number[], polls: number): Promise<T[]> {
  const all: T[] = [];
  const graph = graphOf(source, all);
  let run = await TestRun.start(graph, { parallelism: parallelisms[0] as number });
  for (const parallelism of parallelisms.slice(1)) {
    await run.step(polls, 37);
    const restore = await run.checkpoint();
    // What a crash throws away: these come again.
    const kept = all.length;
    await run.step(polls, 11);
    all.length = kept;
    await run.close();
    run = await TestRun.start(graph, { parallelism, restore });
  }
  try {
    await run.toEnd();
  } finally {
    await run.close();
  }
  return all;
}

const ascending = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const sorted = (numbers: number[]): number[] => numbers.toSorted((a, b) => a - b);

describe('the generator', () => {
  it('emits in order of the index in one subtask', async () => {
    const all: number[] = [];
    const run = await TestRun.start(graphOf(generator({ record: (i) => i, records: 1000, splits: 7 }), all));
    await run.toEnd();
    expect(all).toEqual(ascending(1000));
  });

  it('emits each record once across restores at other parallelisms', async () => {
    const source = generator({ record: (i) => i, records: 5000, splits: 9 });
    expect(sorted(await acrossRestores(source, [3, 1, 5, 16, 2], 3))).toEqual(ascending(5000));
  });

  it('goes on from a checkpoint taken after its end without emitting anything', async () => {
    const all: number[] = [];
    const graph = graphOf(generator({ record: (i) => i, records: 10 }), all);
    const run = await TestRun.start(graph, { parallelism: 2 });
    await run.toEnd();
    const restore = await run.checkpoint();
    const again = await TestRun.start(graph, { parallelism: 3, restore });
    await again.toEnd();
    expect(sorted(all)).toEqual(ascending(10));
    expect(restore.ended).toBe(true);
  });

  it('keeps to its rate', async () => {
    const clock = new ManualClock();
    const all: number[] = [];
    const source = generator({ record: (i) => i, records: 1000, recordsPerSecond: 100 });
    const run = await TestRun.start(graphOf(source, all), { clock });
    for (let i = 0; i < 100; i++) {
      const step = run.step(1);
      clock.advance(10);
      await step;
    }
    expect(all.length).toBeGreaterThan(90);
    expect(all.length).toBeLessThanOrEqual(101);
  });
});

describe('files of JSON lines', () => {
  it('are read to the last byte, whatever the line ends and lengths', async () => {
    const file = join(directory, 'odd.jsonl');
    const long = 'x'.repeat(300_000);
    await writeFile(file, `{"n":0}\n\r\n  \n{"n":1,"s":"é"}\r\n{"n":2,"s":"${long}"}\n{"n":3}`);
    const lines = await acrossRestores(jsonLinesFiles<{ n: number }>({ files: [file] }), [1], 1);
    expect(lines.map((line) => line.n)).toEqual([0, 1, 2, 3]);
  });

  it('give each line once across restores at other parallelisms', async () => {
    const files = await Promise.all(
      [0, 1, 2, 3, 4].map(async (f) => {
        const file = join(directory, `part-${f}.jsonl`);
        await writeFile(
          file,
          ascending(400)
            .map((i) => `${f * 400 + i}\n`)
            .join(''),
        );
        return file;
      }),
    );
    const source = jsonLinesFiles({ files, parse: (json) => json as number });
    expect(sorted(await acrossRestores(source, [2, 5, 1, 3], 4))).toEqual(ascending(2000));
  });

  it('name the file and the place of a line that cannot be taken', async () => {
    const file = join(directory, 'bad.jsonl');
    await writeFile(file, '{"n":0}\n{nonsense}\n');
    const run = acrossRestores(jsonLinesFiles({ files: [file] }), [1], 1);
    await expect(run).rejects.toMatchObject({ code: 'source-input', details: { file } });
    await expect(acrossRestores(jsonLinesFiles({ files: ['/nowhere.jsonl'] }), [1], 1)).rejects.toMatchObject({
      code: 'source-input',
    });
  });

  it('refuse to go on in a file that became shorter', async () => {
    const file = join(directory, 'shrinks.jsonl');
    await writeFile(file, '1\n2\n3\n');
    const graph = graphOf(jsonLinesFiles({ files: [file] }), []);
    const run = await TestRun.start(graph);
    await run.step(2, 1);
    const restore = await run.checkpoint();
    await writeFile(file, '1\n');
    const again = await TestRun.start(graph, { restore });
    await expect(again.toEnd()).rejects.toMatchObject({ code: 'source-position' });
    await Promise.all([run.close(), again.close()]);
  });
});

const flights = new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets'));
const columns = { date: 'timestamp', delay: 'int', origin: 'string' } as const;

describe('Parquet files', () => {
  it('give each row once, in order of their row groups, across restores', async () => {
    const source = parquetFiles({ files: [flights.pathname], columns, rows: 280_000 });
    const splits = await source.splits();
    expect(splits.map((split) => (split.data as { rows: number }).rows)).toEqual([272_727, 7273]);
    const whole = await acrossRestores(source, [1], 1);
    const rows = await acrossRestores(source, [2, 1], 40);
    expect(whole[0]).toEqual({ date: Date.UTC(2001, 0, 1, 0, 1), delay: 33, origin: 'LAS' });
    expect(whole).toHaveLength(280_000);
    const asLines = (list: typeof rows): string[] => list.map((row) => `${row.date} ${row.delay} ${row.origin}`).sort();
    expect(asLines(rows)).toEqual(asLines(whole));
  });

  it('say which column is not what was declared', async () => {
    const source = parquetFiles({ files: [flights.pathname], columns: { origin: 'int' }, rows: 10 });
    await expect(acrossRestores(source, [1], 1)).rejects.toMatchObject({
      code: 'source-input',
      message: expect.stringContaining('column origin') as string,
    });
  });
});

describe('watermarks of a source', () => {
  it('go on after a restore where the slowest subtask had been', async () => {
    const graph = buildGraph(
      job('time', (flow) =>
        flow
          .from(generator({ record: (i) => i, splits: 2 }), {
            uid: 'source',
            timestamp: (i) => i,
            watermarks: monotonous({ interval: 0 }),
          })
          .to(collect<number>([])),
      ),
    );
    const run = await TestRun.start(graph, { parallelism: 2 });
    await run.step(1, 10);
    const restore = await run.checkpoint();
    const items = restore.operators.flatMap((part) => part.list ?? []);
    expect(items).toContainEqual({ kind: 'watermark', watermarkMs: 8 });
    expect(items).toContainEqual({ kind: 'watermark', watermarkMs: 72 });
    const again = await TestRun.start(graph, { parallelism: 3, restore });
    const next = await again.checkpoint();
    for (const part of next.operators) {
      if (part.list === undefined) continue;
      expect(part.list[0]).toEqual({ kind: 'watermark', watermarkMs: 8 });
    }
  });
});
