import { link, mkdtemp, open, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { generator } from '../sources/generator.ts';
import { MemoryOutputFiles } from '../testing/memory-output-files.ts';
import { type TestCheckpoint, TestRun, type TestRunOptions } from '../testing/test-run.ts';
import { jsonLines } from './json-lines.ts';
import { LocalFiles } from './local-files.ts';
import type { OutputFiles } from './output-files.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sink-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

interface GraphOptions {
  readonly records?: number;
  readonly overwrite?: boolean;
  readonly files?: OutputFiles;
  readonly uid?: string;
  readonly record?: (index: number) => unknown;
}

function graphOf({
  records = 30,
  overwrite = false,
  files,
  uid = 'out',
  record = (i) => i,
}: GraphOptions = {}): JobGraph {
  const sink = jsonLines({ directory, overwrite, ...(files === undefined ? {} : { files }) });
  return buildGraph(
    job('sink', (flow) => flow.from(generator({ record, records, splits: 3 }), { uid: 'source' }).to(sink, { uid })),
  );
}

async function shown(): Promise<unknown[]> {
  const names = (await readdir(directory)).filter((name) => name.startsWith('part-')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
  return texts.flatMap((text) =>
    text
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line)),
  );
}

const ascending = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const sorted = (values: unknown[]): unknown[] => (values as number[]).sort((a, b) => a - b);

/** Reads `records` and registers a checkpoint of them. */
async function commit(run: TestRun): Promise<TestCheckpoint> {
  await run.step(1, 5);
  const checkpoint = await run.checkpoint();
  await run.complete(checkpoint);
  return checkpoint;
}

describe('a late attempt with overwrite', () => {
  it('does not delete what a newer attempt of the same job has committed', async () => {
    const graph = graphOf({ overwrite: true });
    await (await TestRun.start(graph, { generation: 2, lineage: 'a' })).finish();
    const late = TestRun.start(graph, { generation: 1, lineage: 'a' });
    await expect(late).rejects.toMatchObject({ code: 'attempt-fenced', kind: 'fenced' });
    expect(sorted(await shown())).toEqual(ascending(30));
  });

  it('does not delete it either when the marker is older than the files, or gone', async () => {
    const graph = graphOf({ overwrite: true });
    await (await TestRun.start(graph, { generation: 3 })).finish();
    const marker = join(directory, '.millrace-owner');
    await writeFile(marker, (await readFile(marker, 'utf8')).replace('"generation":3', '"generation":1'));
    await expect(TestRun.start(graph, { generation: 2 })).rejects.toMatchObject({ code: 'attempt-fenced' });
    await unlink(marker);
    await expect(TestRun.start(graph, { generation: 2 })).rejects.toMatchObject({ code: 'sink-directory-used' });
    expect(sorted(await shown())).toEqual(ascending(30));
  });

  it('still replaces the output of a run with an older data directory, whose generations were higher', async () => {
    const old = await TestRun.start(graphOf({ record: () => 'old' }), { generation: 9, lineage: 'a', parallelism: 2 });
    await commit(old);
    await old.step(1, 5);
    await old.checkpoint();
    await expect(TestRun.start(graphOf(), { generation: 1, lineage: 'b' })).rejects.toMatchObject({
      code: 'sink-directory-used',
      message: expect.stringContaining('overwrite') as string,
    });
    const fresh = { generation: 1, lineage: 'b', parallelism: 2 };
    await (await TestRun.start(graphOf({ overwrite: true }), fresh)).finish();
    expect(sorted(await shown())).toEqual(ascending(30));
    expect((await readdir(directory)).filter((name) => name.includes('-g9'))).toEqual([]);
  });
});

describe('two writers on one output directory', () => {
  it.each<[string, TestRunOptions, GraphOptions]>([
    ['job', { job: 'other' }, {}],
    ['operator', {}, { uid: 'other' }],
  ])('do not mix: the second is told whose it is (another %s)', async (_, options, graph) => {
    const first = await TestRun.start(graphOf());
    const second = TestRun.start(graphOf({ ...graph, overwrite: true, record: () => 'mine' }), options);
    await expect(second).rejects.toMatchObject({
      code: 'sink-directory-used',
      message: expect.stringMatching(/operator "out" of job "sink".*"other".*choose another directory/) as string,
    });
    await first.finish();
    expect(sorted(await shown())).toEqual(ascending(30));
  });

  it('do not mix when both start at once', async () => {
    const starts = ['a', 'b', 'c'].map((name) => TestRun.start(graphOf({ record: () => name }), { job: name }));
    const outcomes = await Promise.allSettled(starts);
    const winners = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(winners).toHaveLength(1);
    await winners[0]?.finish();
    expect(new Set(await shown()).size).toBe(1);
  });

  it('do not overwrite each other with the same job on two data directories: who lost it is told', async () => {
    const a = await TestRun.start(graphOf({ record: () => 'a' }), { lineage: 'a' });
    await a.step(1, 5);
    const checkpoint = await a.checkpoint();
    const overwriting = graphOf({ overwrite: true, record: () => 'b' });
    const b = await TestRun.start(overwriting, { lineage: 'b' });
    await b.finish();
    await expect(a.complete(checkpoint)).rejects.toMatchObject({ code: 'sink-directory-used' });
    await expect(a.step(1)).rejects.toMatchObject({ code: 'sink-directory-used' });
    const again = TestRun.start(graphOf(), { lineage: 'a', generation: 2, restore: checkpoint });
    await expect(again).rejects.toMatchObject({ code: 'sink-directory-used' });
    expect(new Set(await shown())).toEqual(new Set(['b']));
  });

  it('do not replace a file that something else put under the name of a part', async () => {
    const run = await TestRun.start(graphOf());
    await run.step(1, 5);
    const checkpoint = await run.checkpoint();
    await writeFile(join(directory, 'part-000-000001-g1.jsonl'), '"foreign"\n');
    await expect(run.complete(checkpoint)).rejects.toMatchObject({
      code: 'sink-directory-used',
      message: expect.stringContaining(directory) as string,
    });
    expect(await shown()).toEqual(['foreign']);
  });
});

describe('a disk error while publishing', () => {
  /** Fails the first `failures` moves of parts. */
  class FlakyFiles extends LocalFiles {
    failures: number;

    constructor(failures: number) {
      super(directory);
      this.failures = failures;
    }

    override move(from: string, to: string): Promise<'done' | 'missing' | 'taken'> {
      if (to.startsWith('part-') && this.failures-- > 0) return Promise.reject(new Error('EIO: i/o error, link'));
      return super.move(from, to);
    }
  }

  it('does not block the sink for good: the repeated complete publishes', async () => {
    const run = await TestRun.start(graphOf({ files: new FlakyFiles(1) }));
    await run.step(1, 5);
    const checkpoint = await run.checkpoint();
    await expect(run.complete(checkpoint)).rejects.toMatchObject({ code: 'sink-io' });
    await run.complete(checkpoint);
    expect(await shown()).toHaveLength(5);
    await run.finish();
    expect(sorted(await shown())).toEqual(ascending(30));
  });

  it('that stays restarts the job, and the restore publishes', async () => {
    const run = await TestRun.start(graphOf({ files: new FlakyFiles(3) }));
    await run.step(1, 5);
    const checkpoint = await run.checkpoint();
    for (let tries = 0; tries < 2; tries++) await expect(run.complete(checkpoint)).rejects.toThrow('EIO');
    await run.step(1, 1); // still alive
    await expect(run.complete(checkpoint)).rejects.toThrow('EIO');
    await expect(run.step(1, 1)).rejects.toThrow('EIO');
    await (await TestRun.start(graphOf(), { generation: 2, restore: checkpoint })).finish();
    expect(sorted(await shown())).toEqual(ascending(30));
  });
});

describe('a reader that takes published files away', () => {
  const take = async (taken: unknown[]): Promise<void> => {
    taken.push(...(await shown()));
    const names = (await readdir(directory)).filter((name) => name.startsWith('part-'));
    for (const name of names) await unlink(join(directory, name));
  };

  it('does not stop the job at its next restart, nor at the one after with another parallelism', async () => {
    const taken: unknown[] = [];
    const run = await TestRun.start(graphOf(), { parallelism: 3 });
    await commit(run);
    const checkpoint = await commit(run);
    await take(taken);
    await TestRun.start(graphOf(), { generation: 2, restore: checkpoint, parallelism: 2 });
    const last = await TestRun.start(graphOf(), { generation: 3, restore: checkpoint, parallelism: 1 });
    await last.finish();
    await take(taken);
    expect(sorted(taken)).toEqual(ascending(30));
  });

  it('does not hide that a file is lost which nobody had published', async () => {
    const run = await TestRun.start(graphOf());
    await commit(run);
    await run.step(1, 5);
    const checkpoint = await run.checkpoint();
    for (const name of await readdir(directory)) if (name.startsWith('.pending-')) await unlink(join(directory, name));
    // A restart that fails does not make the next one believe that all is well.
    for (const generation of [2, 3]) {
      const restart = TestRun.start(graphOf(), { generation, restore: checkpoint });
      await expect(restart).rejects.toMatchObject({ code: 'sink-output-missing' });
    }
  });

  it('gets every record once, whichever step a crash comes before', async () => {
    const calm = new MemoryOutputFiles();
    await withReader(calm, Number.POSITIVE_INFINITY);
    for (let crashAt = 0; crashAt < calm.steps.length; crashAt++) {
      // Between link and unlink a file has both names; if it is deleted under the visible one before the restart,
      // nobody can tell that it was ever seen.
      if (calm.steps[crashAt]?.startsWith('remove .pending-')) continue;
      const taken = await withReader(new MemoryOutputFiles(), crashAt);
      expect(sorted(taken), `crash before step ${crashAt}: ${calm.steps[crashAt]}`).toEqual(ascending(30));
    }
  });

  async function withReader(files: MemoryOutputFiles, crashAt: number): Promise<unknown[]> {
    const taken: unknown[] = [];
    const read = (): void => {
      for (const [name, text] of files.content) {
        if (!name.startsWith('part-')) continue;
        taken.push(...text.trim().split('\n').map(Number));
        files.content.delete(name);
      }
    };
    let registered: TestCheckpoint | undefined;
    const attempt = async (generation: number, parallelism: number): Promise<void> => {
      const restore = registered === undefined ? {} : { restore: registered };
      const run = await TestRun.start(graphOf({ files }), { generation, parallelism, ...restore });
      for (let ended = false; !ended; read()) {
        ended = await run.step(1, 3);
        const earlier = registered;
        registered = await run.checkpoint();
        // Completes come late: after the next round's snapshot.
        if (earlier !== undefined) await run.complete(earlier);
      }
      await run.complete(registered as TestCheckpoint);
      read();
    };
    let steps = 0;
    files.before = () => {
      if (steps++ === crashAt) throw new Error('crash');
    };
    try {
      await attempt(1, 2);
    } catch (error) {
      if ((error as Error).message !== 'crash') throw error;
      read();
      await attempt(2, 1 + (crashAt % 3));
    }
    return taken;
  }
});

describe('local files', () => {
  it('survive a power cut after a restore that found its files already published', async () => {
    const handle = await open(directory);
    await handle.close();
    const sync = vi.spyOn(Object.getPrototypeOf(handle) as { sync(): Promise<void> }, 'sync');
    try {
      const files = new LocalFiles(directory);
      expect(await files.move('a', 'b')).toBe('missing');
      expect(sync).toHaveBeenCalledTimes(1);
    } finally {
      sync.mockRestore();
    }
  });

  it('finish a move that a crash left with both names', async () => {
    const files = new LocalFiles(directory);
    await writeFile(join(directory, 'a'), 'text');
    await link(join(directory, 'a'), join(directory, 'b'));
    expect(await files.move('a', 'b')).toBe('done');
    expect(await readdir(directory)).toEqual(['b']);
    await writeFile(join(directory, 'a'), 'other');
    expect(await files.move('a', 'b')).toBe('taken');
    await rename(join(directory, 'b'), join(directory, 'c'));
    expect(await files.move('a', 'b')).toBe('done');
    expect(await new LocalFiles(join(directory, 'none')).move('a', 'b')).toBe('missing');
  });
});
