import { describe, expect, it } from 'vitest';
import type { Partitioning } from '../graph/job-graph.ts';
import { byKey, testGraph } from '../testing/fixture-graph.ts';
import { PassOperator, SplitSource } from '../testing/fixture-operators.ts';
import { physicalPlan } from './physical-plan.ts';
import { redistribute, restoredList } from './redistribute.ts';

const forward: Partitioning = { kind: 'forward' };
const source = (): SplitSource => new SplitSource([], 1);
const pass = (): PassOperator => new PassOperator();

function chains(graph: Parameters<typeof physicalPlan>[0]): string[] {
  return physicalPlan(graph).chains.map((chain) => chain.operators.map((node) => node.uid).join(' '));
}

describe('the physical plan', () => {
  it('chains what is joined by forward edges only, also where a chain forks', () => {
    const graph = testGraph({ source, map: pass, left: pass, right: pass, keyed: pass, sink: pass }, [
      { from: 'source', to: 'map', partitioning: forward },
      { from: 'map', to: 'left', partitioning: forward },
      { from: 'map', to: 'right', partitioning: forward },
      { from: 'right', to: 'keyed', partitioning: byKey },
      { from: 'keyed', to: 'sink', partitioning: forward },
    ]);
    expect(chains(graph)).toEqual(['source map left right', 'keyed sink']);
  });

  it('gives an operator with several inputs a task of its own', () => {
    const graph = testGraph({ a: source, b: source, union: pass, sink: pass }, [
      { from: 'a', to: 'union', partitioning: forward },
      { from: 'b', to: 'union', partitioning: forward },
      { from: 'union', to: 'sink', partitioning: forward },
    ]);
    expect(chains(graph)).toEqual(['a', 'b', 'union sink']);
  });

  it('refuses a cycle', () => {
    const graph = testGraph({ source, a: pass, b: pass }, [
      { from: 'source', to: 'a', partitioning: forward },
      { from: 'a', to: 'b', partitioning: byKey },
      { from: 'b', to: 'a', partitioning: byKey },
    ]);
    expect(() => physicalPlan(graph)).toThrow(/cycle/);
  });
});

describe('list state at a restore', () => {
  const parts = [
    { operator: 'x', subtask: 1, list: ['c', 'd'] },
    { operator: 'x', subtask: 0, list: ['a', 'b'] },
    { operator: 'y', subtask: 0, list: ['z'] },
    { operator: 'x', subtask: 2, list: [] },
  ];
  const share = (subtask: number, parallelism: number, operator = 'x'): readonly unknown[] | undefined =>
    restoredList(parts, { operator, subtask, parallelism });

  it('goes back to the same subtasks at the same parallelism', () => {
    expect([0, 1, 2].map((subtask) => share(subtask, 3))).toEqual([['a', 'b'], ['c', 'd'], []]);
  });

  it('is dealt whole, each item once, at another', () => {
    expect([0, 1].map((subtask) => share(subtask, 2))).toEqual([
      ['a', 'c'],
      ['b', 'd'],
    ]);
    expect([0, 1, 2, 3, 4].map((subtask) => share(subtask, 5))).toEqual([['a'], ['b'], ['c'], ['d'], []]);
  });

  it('is empty for a subtask without a share and undefined for an operator that the checkpoint does not know', () => {
    expect(share(1, 2, 'y')).toEqual([]);
    expect(share(0, 2, 'new')).toBeUndefined();
    expect(redistribute([], 0, 1)).toEqual([]);
  });
});
