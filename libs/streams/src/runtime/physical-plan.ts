import { assert } from '@millrace/kernel';
import type { Edge, JobGraph, OperatorNode } from '../graph/job-graph.ts';

/** One chain: operators that run as plain calls of each other, in an order in which producers come first. */
export interface ChainPlan {
  /** Index in the plan's `chains`. */
  readonly id: number;
  readonly operators: readonly OperatorNode[];
  /** Edges from other chains into the head; empty for a source. */
  readonly inputs: readonly Edge[];
}

/** How the subtasks of a slot are laid out; the same in every slot of an attempt. */
export interface PhysicalPlan {
  /** In an order in which producers come before their consumers. */
  readonly chains: readonly ChainPlan[];
  /** The chain of each operator, by operator id. */
  readonly chainOf: readonly number[];
}

/** True when records of `edge` pass as calls: a forward edge that is the only input of its operator. */
function isChained(graph: JobGraph, edge: Edge): boolean {
  if (edge.partitioning.kind !== 'forward') return false;
  return graph.edges.every((other) => other === edge || other.to !== edge.to);
}

/** Cuts a job graph into chains. Rejects graphs with cycles and operators that nothing feeds. */
export function physicalPlan(graph: JobGraph): PhysicalPlan {
  const order = topologicalOrder(graph);
  const chainOf = graph.operators.map(() => -1);
  const chains: Array<{ id: number; operators: OperatorNode[]; inputs: Edge[] }> = [];
  for (const node of order) {
    const inputs = graph.edges.filter((edge) => edge.to === node.id);
    assert(node.isSource === (inputs.length === 0), `operator '${node.uid}': only sources have no input`);
    const chained = inputs.length === 1 && isChained(graph, inputs[0] as Edge);
    if (chained) {
      const id = chainOf[(inputs[0] as Edge).from] as number;
      chainOf[node.id] = id;
      chains[id]?.operators.push(node);
    } else {
      chainOf[node.id] = chains.length;
      chains.push({ id: chains.length, operators: [node], inputs });
    }
  }
  return { chains, chainOf };
}

function topologicalOrder(graph: JobGraph): readonly OperatorNode[] {
  const waiting = graph.operators.map((node) => graph.edges.filter((edge) => edge.to === node.id).length);
  const ready = graph.operators.filter((node) => waiting[node.id] === 0);
  for (let i = 0; i < ready.length; i++) {
    for (const edge of graph.edges) {
      if (edge.from !== (ready[i] as OperatorNode).id) continue;
      waiting[edge.to] = (waiting[edge.to] as number) - 1;
      if (waiting[edge.to] === 0) ready.push(graph.operators[edge.to] as OperatorNode);
    }
  }
  assert(ready.length === graph.operators.length, `job '${graph.name}' has a cycle`);
  return ready;
}
