import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import { collect } from '../sinks/callback.ts';
import { TestRun } from '../testing/test-run.ts';
import { type CsvOptions, csvFiles } from './csv.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'csv-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const columns = { id: 'int', name: 'string', price: 'float?', sold: 'bool?', at: 'timestamp?' } as const;

async function fileOf(text: string): Promise<string> {
  const file = join(directory, `${crypto.randomUUID()}.csv`);
  await writeFile(file, text);
  return file;
}

async function rowsOf(text: string, options: Partial<CsvOptions<typeof columns>> = {}): Promise<unknown[]> {
  const all: unknown[] = [];
  const source = csvFiles({ files: [await fileOf(text)], columns, ...options });
  const run = await TestRun.start(buildGraph(job('csv', (flow) => flow.from(source).to(collect<unknown>(all)))));
  try {
    await run.toEnd();
  } finally {
    await run.close();
  }
  return all;
}

describe('CSV files', () => {
  it('give typed rows of the columns that were declared, wherever they stand', async () => {
    const text =
      'at,other,name,id,sold,price\r\n2024-02-01T10:00:00Z,x,é,1,true,1.5\r\n,,"",2,,\n2024-02-01,y,b,3,0,-2e3';
    expect(await rowsOf(text)).toEqual([
      { id: 1, name: 'é', price: 1.5, sold: true, at: Date.UTC(2024, 1, 1, 10) },
      { id: 2, name: '', price: null, sold: null, at: null },
      { id: 3, name: 'b', price: -2000, sold: false, at: Date.UTC(2024, 1, 1) },
    ]);
  });

  it('may hold line ends, delimiters and quotes inside of quotes', async () => {
    const text = '\uFEFFid;name;price;sold;at\n1;"a;""b""\r\nc";;;\n\n2;plain;;;\n';
    expect(await rowsOf(text, { delimiter: ';' })).toMatchObject([
      { id: 1, name: 'a;"b"\r\nc' },
      { id: 2, name: 'plain' },
    ]);
  });

  it('may come without a header', async () => {
    expect(await rowsOf('1,a,,,\n', { header: ['id', 'name', 'price', 'sold', 'at'] })).toMatchObject([{ id: 1 }]);
  });

  it.each([
    ['a missing column', 'id,price,sold,at\n', /no column name/],
    ['a value of another type', 'id,name,price,sold,at\n1x,a,,,\n', /byte 22.*column id: "1x"/],
    ['a number beyond 2^53', 'id,name,price,sold,at\n9007199254740993,a,,,\n', /column id/],
    ['another number of fields', 'id,name,price,sold,at\n1,a\n', /2 fields, the header 5/],
    ['an open quote', 'id,name,price,sold,at\n1,"a,,,\n', /not closed/],
    ['text behind a quote', 'id,name,price,sold,at\n1,"a"b,,,\n', /behind a closing quote/],
    ['no header', '', /without a header/],
  ])('are refused with %s, naming the file and the place', async (_, text, message) => {
    await expect(rowsOf(text)).rejects.toMatchObject({
      code: 'source-input',
      message: expect.stringMatching(message) as string,
      details: { file: expect.stringContaining(directory) as string },
    });
  });

  it('give each row once across a restore at another parallelism', async () => {
    const text = (from: number): string =>
      `id,name,price,sold,at\n${Array.from({ length: 300 }, (_, i) => `${from + i},"n\n${from + i}",,,\n`).join('')}`;
    const source = csvFiles({ files: [await fileOf(text(0)), await fileOf(text(300))], columns });
    const all: Array<{ id: number }> = [];
    const graph = buildGraph(job('csv', (flow) => flow.from(source, { uid: 'csv' }).to(collect<{ id: number }>(all))));
    const run = await TestRun.start(graph, { parallelism: 2 });
    await run.step(3, 40);
    const restore = await run.checkpoint();
    const kept = all.length;
    await run.step(2, 10);
    all.length = kept;
    const again = await TestRun.start(graph, { parallelism: 1, restore });
    await again.toEnd();
    expect(all.map(({ id }) => id).sort((a, b) => a - b)).toEqual(Array.from({ length: 600 }, (_, i) => i));
    await Promise.all([run.close(), again.close()]);
  });
});
