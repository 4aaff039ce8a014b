import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { job } from '../api/job.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { JobGraph } from '../graph/job-graph.ts';
import { collect } from '../sinks/callback.ts';
import { TestRun } from '../testing/test-run.ts';
import { type WatchDirectoryOptions, watchDirectory } from './watch-directory.ts';

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'watch-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function emptyDirectory(): Promise<string> {
  const directory = join(root, crypto.randomUUID());
  await mkdir(directory);
  return directory;
}

/** As writers have to: whole under a hidden name, then renamed. */
async function appear(directory: string, name: string, numbers: readonly number[]): Promise<void> {
  await writeFile(join(directory, `.${name}`), numbers.map((n) => `${n}\n`).join(''));
  await rename(join(directory, `.${name}`), join(directory, name));
}

function graphOf(directory: string, all: number[], options: Partial<WatchDirectoryOptions<number>> = {}): JobGraph {
  const source = watchDirectory<number>({ directory, every: 1, parse: (json) => json as number, ...options });
  return buildGraph(job('watch', (flow) => flow.from(source, { uid: 'watch' }).to(collect(all))));
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const sorted = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);

describe('a watched directory', () => {
  it('gives files that are there and files that appear, each once, across restores at other parallelisms', async () => {
    const directory = await emptyDirectory();
    const all: number[] = [];
    const graph = graphOf(directory, all);
    let next = 0;
    const more = async (files: number): Promise<void> => {
      for (let i = 0; i < files; i++, next += 50) await appear(directory, `f-${next}`, range(next, next + 50));
    };
    await more(5);
    let run = await TestRun.start(graph, { parallelism: 1 });
    for (const parallelism of [3, 2, 1, 4]) {
      await run.step(9, 20);
      const restore = await run.checkpoint();
      const kept = all.length;
      await run.step(7, 20);
      all.length = kept; // the crash throws it away, and it comes again
      await run.close();
      await more(3);
      run = await TestRun.start(graph, { parallelism, restore });
    }
    for (let steps = 0; all.length < next && steps < 200; steps++) await run.step(4, 100);
    await run.step(20, 100);
    expect(sorted(all)).toEqual(range(0, next));
    await run.close();
  });

  it('takes no hidden files, no directories, and only names that match', async () => {
    const directory = await emptyDirectory();
    await writeFile(join(directory, '.part'), '1\n');
    await writeFile(join(directory, '_log'), '2\n');
    await mkdir(join(directory, 'part-dir'));
    await appear(directory, 'part-1', [3]);
    await appear(directory, 'other', [4]);
    const all: number[] = [];
    const run = await TestRun.start(graphOf(directory, all, { match: /^part-/ }));
    await run.step(10, 10);
    expect(all).toEqual([3]);
    await run.close();
  });

  it('forgets files that have left, so that its state does not grow, and reads a new one under an old name', async () => {
    const directory = await emptyDirectory();
    const all: number[] = [];
    const run = await TestRun.start(graphOf(directory, all));
    await appear(directory, 'a', [1]);
    await run.step(10, 10);
    await rm(join(directory, 'a'));
    await run.step(10, 10);
    expect(JSON.stringify(await run.checkpoint())).not.toContain('"a"');
    await appear(directory, 'a', [2]);
    await run.step(10, 10);
    expect(all).toEqual([1, 2]);
    await run.close();
  });

  it('refuses more files than it may remember, and a directory that is not there', async () => {
    const directory = await emptyDirectory();
    for (const name of ['a', 'b', 'c']) await appear(directory, name, [1]);
    const run = await TestRun.start(graphOf(directory, [], { filesMax: 2 }));
    await expect(run.step(3, 10)).rejects.toMatchObject({ code: 'source-input' });
    await run.close();
    const nowhere = await TestRun.start(graphOf(join(root, 'nowhere'), []));
    await expect(nowhere.step(3, 10)).rejects.toMatchObject({ code: 'source-input' });
    await nowhere.close();
  });
});
