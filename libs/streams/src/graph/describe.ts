import type { JobGraph } from './job-graph.ts';

/** A graph as plain JSON, for the control plane and the console. */
export interface GraphDescription {
  readonly operators: readonly {
    readonly uid: string;
    readonly kind: string;
    /** Operators of one chain run as one call. */
    readonly chain: number;
    readonly stateful: boolean;
  }[];
  readonly edges: readonly {
    readonly from: string;
    readonly to: string;
    readonly partitioning: 'forward' | 'hash' | 'rebalance' | 'broadcast' | 'custom';
  }[];
}

/** Chains are the parts of the graph that hang together by forward edges; numbered by their first operator. */
export function describe(graph: JobGraph): GraphDescription {
  const chains = chainsOf(graph);
  const uid = (id: number): string => graph.operators[id]?.uid ?? '';
  return {
    operators: graph.operators.map((node) => ({
      uid: node.uid,
      kind: node.kind,
      chain: chains[node.id] as number,
      stateful: node.stateful,
    })),
    edges: graph.edges.map((edge) => ({
      from: uid(edge.from),
      to: uid(edge.to),
      partitioning: edge.partitioning.kind,
    })),
  };
}

function chainsOf(graph: JobGraph): number[] {
  const root = graph.operators.map((node) => node.id);
  const find = (id: number): number => {
    const parent = root[id] as number;
    return parent === id ? id : find(parent);
  };
  for (const edge of graph.edges) {
    if (edge.partitioning.kind !== 'forward') continue;
    const [a, b] = [find(edge.from), find(edge.to)];
    root[Math.max(a, b)] = Math.min(a, b);
  }
  const numbers = new Map<number, number>();
  return graph.operators.map((node) => {
    const head = find(node.id);
    if (!numbers.has(head)) numbers.set(head, numbers.size);
    return numbers.get(head) as number;
  });
}
