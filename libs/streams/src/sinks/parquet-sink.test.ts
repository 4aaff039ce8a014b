import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { generator } from '../sources/generator.ts';
import { parquetFiles } from '../sources/parquet.ts';
import type { RowOf } from '../sources/parquet-columns.ts';
import { TestRun } from '../testing/test-run.ts';
import { collect } from './callback.ts';
import { parquetSink } from './parquet-sink.ts';

const columns = { id: 'int', name: 'string?', price: 'float', sold: 'bool', at: 'timestamp' } as const;
type Row = RowOf<typeof columns>;

const rowOf = (i: number): Row => ({
  id: i,
  name: i % 3 === 0 ? null : `name ${i} é`,
  price: i / 4,
  sold: i % 2 === 0,
  at: Date.UTC(2024, 0, 1) + i,
});

async function directoryOf(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'parquet-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function rowsIn(directory: string): Promise<Row[]> {
  const names = (await readdir(directory)).filter((name) => name.startsWith('part-')).sort();
  const rows: Row[] = [];
  const source = parquetFiles({ files: names.map((name) => join(directory, name)), columns });
  const run = await TestRun.start(buildGraph(job('read', (flow) => flow.from(source).to(collect<Row>(rows)))));
  await run.toEnd();
  await run.close();
  return rows.toSorted((a, b) => a.id - b.id);
}

describe('the Parquet sink', () => {
  it('writes files that are read back row for row, exactly once across a crash and another parallelism', async () => {
    const directory = await directoryOf();
    const source = generator({ record: rowOf, records: 20_000, splits: 4 });
    const sink = parquetSink({ directory, columns, rowGroupRows: 700 });
    const graph = buildGraph(job('write', (flow) => flow.from(source, { uid: 'source' }).to(sink, { uid: 'out' })));
    const first = await TestRun.start(graph, { parallelism: 2 });
    await first.step(3, 2000);
    const restore = await first.checkpoint();
    await first.step(1, 1000);
    await first.close();
    const second = await TestRun.start(graph, { parallelism: 3, generation: 2, restore });
    await second.finish();
    const names = (await readdir(directory)).filter((name) => name.startsWith('part-'));
    expect(names.every((name) => name.endsWith('.parquet'))).toBe(true);
    expect(names).toHaveLength(5);
    expect(await rowsIn(directory)).toEqual(Array.from({ length: 20_000 }, (_, i) => rowOf(i)));
  });

  it('refuses a record that does not fit its columns, naming operator and column', async () => {
    const directory = await directoryOf();
    const source = generator({ record: (i) => ({ ...rowOf(i), price: '1' as unknown as number }), records: 5 });
    const sink = parquetSink({ directory, columns });
    const graph = buildGraph(job('write', (flow) => flow.from(source).to(sink, { uid: 'out' })));
    const run = await TestRun.start(graph);
    await expect(run.toEnd()).rejects.toMatchObject({
      code: 'bad-argument',
      message: expect.stringMatching(/out: column price/) as string,
    });
    await run.close();
  });
});
