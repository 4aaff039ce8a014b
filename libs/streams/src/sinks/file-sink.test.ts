import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { generator } from '../sources/generator.ts';
import { MemoryOutputFiles } from '../testing/memory-output-files.ts';
import { type TestCheckpoint, TestRun } from '../testing/test-run.ts';
import { jsonLines } from './json-lines.ts';
import type { OutputFiles } from './output-files.ts';

function graphOf(files: OutputFiles, options: { records?: number; overwrite?: boolean } = {}): JobGraph {
  return buildGraph(
    job('sink', (flow) =>
      flow
        .from(generator({ record: (i) => i, records: options.records ?? 1000, splits: 4 }), { uid: 'source' })
        .to(jsonLines({ directory: '/out', files, overwrite: options.overwrite }), { uid: 'out' }),
    ),
  );
}

function published(files: MemoryOutputFiles): number[] {
  const names = [...files.content.keys()].filter((name) => !name.startsWith('.'));
  const lines = names.flatMap((name) => (files.content.get(name) as string).split('\n').filter((line) => line !== ''));
  return lines.map(Number).sort((a, b) => a - b);
}

/** Hidden files with records; the marker and the logs of what was published stay. */
const hidden = (files: MemoryOutputFiles): string[] =>
  [...files.content.keys()].filter((name) => /^\.(inprogress|pending)-/.test(name));
const ascending = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('the file sink', () => {
  it('shows nothing before the checkpoint is registered, and whole files after', async () => {
    const files = new MemoryOutputFiles();
    const run = await TestRun.start(graphOf(files), { parallelism: 2 });
    await run.step(3, 50);
    const checkpoint = await run.checkpoint();
    expect(published(files)).toEqual([]);
    await run.complete(checkpoint);
    await run.complete(checkpoint);
    expect(published(files)).toHaveLength(300);
    await run.finish();
    expect(published(files)).toEqual(ascending(1000));
    expect(hidden(files)).toEqual([]);
  });

  it('makes no file for a checkpoint without records', async () => {
    const files = new MemoryOutputFiles();
    const run = await TestRun.start(graphOf(files, { records: 0 }));
    await run.finish();
    expect([...files.content.keys()]).toEqual(['.millrace-owner']);
  });

  it('publishes what an aborted round wrote with the next registered one', async () => {
    const files = new MemoryOutputFiles();
    const run = await TestRun.start(graphOf(files));
    await run.step(2, 100);
    await run.checkpoint();
    await run.step(1, 100);
    await run.complete(await run.checkpoint());
    expect(published(files)).toEqual(ascending(300));
    await run.close();
  });

  it('is exactly once whichever step a crash comes before, at any parallelism of the restart', async () => {
    // As many steps as one undisturbed run does; each run crashes before one of them.
    const calm = new MemoryOutputFiles();
    await crashing(calm, Number.POSITIVE_INFINITY);
    expect(calm.steps.length).toBeGreaterThan(20);
    for (let crashAt = 0; crashAt < calm.steps.length; crashAt++) {
      const files = new MemoryOutputFiles();
      await crashing(files, crashAt);
      expect(published(files), `crash before step ${crashAt}: ${calm.steps[crashAt]}`).toEqual(ascending(1000));
      expect(hidden(files)).toEqual([]);
    }
  });

  it('is not harmed by a zombie that goes on writing after the restart', async () => {
    const files = new MemoryOutputFiles();
    const graph = graphOf(files);
    const zombie = await TestRun.start(graph, { parallelism: 2, generation: 1 });
    await zombie.step(1, 100);
    const registered = await zombie.checkpoint();
    const run = await TestRun.start(graph, { parallelism: 1, generation: 2, restore: registered });
    await zombie.step(2, 100);
    const refused = await zombie.checkpoint();
    // It may still hear of the round that was registered, but of none after its fence.
    await zombie.complete(registered);
    await run.finish();
    expect(refused.number).toBe(registered.number + 1);
    expect(published(files)).toEqual(ascending(1000));
  });

  it('refuses a directory with the output of an earlier run, unless told to overwrite it', async () => {
    const files = new MemoryOutputFiles();
    files.content.set('notes.txt', 'mine');
    await (await TestRun.start(graphOf(files))).finish();
    await expect(TestRun.start(graphOf(files), { generation: 7 })).rejects.toMatchObject({
      code: 'sink-directory-used',
      message: expect.stringContaining('/out') as string,
    });
    const run = await TestRun.start(graphOf(files, { records: 5, overwrite: true }), { generation: 7 });
    await run.finish();
    expect(files.content.get('notes.txt')).toBe('mine');
    files.content.delete('notes.txt');
    expect(published(files)).toEqual(ascending(5));
  });

  it('removes what an attempt left that died before its first checkpoint', async () => {
    const files = new MemoryOutputFiles();
    const dead = await TestRun.start(graphOf(files, { records: 200_000 }), { generation: 1 });
    await dead.step(1, 100_000);
    await dead.checkpoint();
    const run = await TestRun.start(graphOf(files, { records: 3 }), { generation: 2 });
    await run.finish();
    expect(published(files)).toEqual([0, 1, 2]);
    expect(hidden(files)).toEqual([]);
  });

  it('says loudly that a file is gone which a checkpoint had written', async () => {
    const files = new MemoryOutputFiles();
    const graph = graphOf(files);
    const run = await TestRun.start(graph);
    await run.step(1, 10);
    const restore = await run.checkpoint();
    files.content.clear();
    await expect(TestRun.start(graph, { restore, generation: 2 })).rejects.toMatchObject({
      code: 'sink-output-missing',
    });
  });

  it('writes to a local directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sink-'));
    try {
      const target = join(directory, 'a', 'b');
      const graph = buildGraph(
        job('local', (flow) =>
          flow
            .from(generator({ record: (i) => ({ i, text: 'x'.repeat(100) }), records: 5000 }))
            .to(jsonLines({ directory: target })),
        ),
      );
      await (await TestRun.start(graph, { parallelism: 2 })).finish();
      const names = (await readdir(target)).filter((name) => !name.startsWith('.')).sort();
      expect(names).toEqual(['part-000-000001-g1.jsonl', 'part-001-000001-g1.jsonl']);
      const texts = await Promise.all(names.map((name) => readFile(join(target, name), 'utf8')));
      const indices = texts
        .flatMap((text) => text.trim().split('\n'))
        .map((line) => (JSON.parse(line) as { i: number }).i);
      expect(indices.sort((a, b) => a - b)).toEqual(ascending(5000));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});

class Crash extends Error {}

/**
 * The whole life of a job with a round after each poll, of which every other one is never registered. Crashes once, before step `crashAt`, and restarts from the
 * newest registered checkpoint; registration itself is the point between `checkpoint` and `complete`.
 */
async function crashing(files: MemoryOutputFiles, crashAt: number): Promise<void> {
  let registered: TestCheckpoint | undefined;
  const attempt = async (generation: number, parallelism: number): Promise<void> => {
    const run = await TestRun.start(graphOf(files), {
      generation,
      parallelism,
      ...(registered === undefined ? {} : { restore: registered }),
    });
    let round = 0;
    for (let ended = false; !ended; ) {
      ended = await run.step(1, 75);
      const checkpoint = await run.checkpoint();
      // Every other round fails after its snapshot: nobody registers it, and the next one has to carry its files.
      if (round++ % 2 === 0 && !ended) continue;
      registered = checkpoint;
      await run.complete(checkpoint);
    }
    await run.close();
  };
  let steps = 0;
  files.before = () => {
    if (steps++ === crashAt) throw new Crash();
  };
  try {
    await attempt(1, 2);
  } catch (error) {
    if (!((error as Error).cause instanceof Crash)) throw error;
    await attempt(2, crashAt % 2 === 0 ? 3 : 1);
  }
}
