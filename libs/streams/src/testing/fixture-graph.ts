import type { Edge, JobGraph, OperatorNode, Partitioning } from '../graph/job-graph.ts';
import { isSourceOperator } from '../graph/job-graph.ts';
import type { Operator } from '../runtime/operator.ts';
import { jsonCodec } from './fixture-operators.ts';

export const byKey: Partitioning = {
  kind: 'hash',
  key: ((value: { key: unknown }) => value.key) as (value: never) => unknown,
  keyCodec: jsonCodec,
};

export interface EdgeSpec {
  readonly from: string;
  readonly to: string;
  readonly partitioning: Partitioning;
  readonly side?: string;
  readonly codec?: Edge['codec'];
}

/** A job graph from operators by uid and edges between them; the inputs of an operator are numbered in order. */
export function testGraph(operators: Record<string, () => Operator>, edges: readonly EdgeSpec[]): JobGraph {
  const uids = Object.keys(operators);
  const inputs = new Map<string, number>();
  return {
    name: 'test',
    operators: uids.map((uid, id): OperatorNode => {
      const create = operators[uid] as () => Operator;
      return { id, uid, kind: 'test', stateful: false, isSource: isSourceOperator(create()), create };
    }),
    edges: edges.map((edge, id): Edge => {
      const input = inputs.get(edge.to) ?? 0;
      inputs.set(edge.to, input + 1);
      return {
        id,
        from: uids.indexOf(edge.from),
        to: uids.indexOf(edge.to),
        input,
        side: edge.side,
        partitioning: edge.partitioning,
        codec: edge.codec ?? jsonCodec,
      };
    }),
  };
}
