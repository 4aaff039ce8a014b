import { assert, MillraceError } from '@millrace/kernel';
import type { Edge, JobGraph, OperatorNode } from '../graph/job-graph.ts';
import { SourceHost } from '../operators/source-host.ts';
import type { Operator } from '../runtime/operator.ts';

/** What stands in for the ends of a job. */
export interface Ends {
  source(uid: string, host: SourceHost<unknown>): Operator;
  sink(uid: string): Operator;
  side(uid: string, side: string): Operator;
  /** Every other operator. */
  inner(uid: string, operator: Operator): Operator;
}

/** The places of a job graph where records come in and go out. */
export interface GraphEnds {
  readonly operators: readonly string[];
  readonly sources: readonly string[];
  readonly sinks: readonly string[];
  readonly sides: readonly { readonly uid: string; readonly side: string }[];
}

export function endsOf(graph: JobGraph): GraphEnds {
  const sides = new Map<string, { readonly uid: string; readonly side: string }>();
  for (const { from, side } of graph.edges) {
    const uid = graph.operators[from]?.uid ?? '';
    if (side !== undefined) sides.set(`${uid}/${side}`, { uid, side });
  }
  return {
    operators: graph.operators.map(({ uid }) => uid),
    sources: graph.operators.filter((node) => node.isSource).map(({ uid }) => uid),
    sinks: graph.operators.filter((node) => isSink(graph, node)).map(({ uid }) => uid),
    sides: [...sides.values()],
  };
}

/**
 * The same job between other ends: its sources and sinks are replaced, except those to `keep`, and every side output goes to
 * an observer, too. The operators in between are the job's own.
 */
export function betweenEnds(graph: JobGraph, ends: Ends, keep: readonly string[]): JobGraph {
  const unknown = keep.find((uid) => !graph.operators.some((node) => node.uid === uid));
  if (unknown !== undefined) {
    throw new MillraceError('bad-argument', `keep names ${unknown}, which job ${graph.name} does not have`);
  }
  const operators = graph.operators.map((node): OperatorNode => {
    const { uid } = node;
    const kept = keep.includes(uid);
    if (node.isSource && !kept) return { ...node, create: () => ends.source(uid, hostOf(node)) };
    if (isSink(graph, node) && !kept) return { ...node, stateful: false, create: () => ends.sink(uid) };
    return { ...node, create: () => ends.inner(uid, node.create()) };
  });
  const edges = [...graph.edges];
  for (const { uid, side } of endsOf(graph).sides) {
    const from = operators.findIndex((node) => node.uid === uid);
    const codec = graph.edges.find((edge) => edge.from === from && edge.side === side)?.codec as Edge['codec'];
    const id = operators.length;
    operators.push({
      id,
      uid: `${uid}/${side}`,
      kind: 'test-side',
      stateful: false,
      isSource: false,
      create: () => ends.side(uid, side),
    });
    edges.push({ id: edges.length, from, to: id, input: 0, side, partitioning: { kind: 'forward' }, codec });
  }
  return { name: graph.name, operators, edges };
}

function isSink(graph: JobGraph, node: OperatorNode): boolean {
  return !node.isSource && graph.edges.every((edge) => edge.from !== node.id);
}

function hostOf(node: OperatorNode): SourceHost<unknown> {
  const host = node.create();
  assert(host instanceof SourceHost, `source ${node.uid} is no source of a job file`);
  return host;
}
