import type { Edge, JobGraph } from '../graph/job-graph.ts';

/** What an edge is called in a checkpoint: by the operators' uids, so that it is found again in a changed graph. */
export function edgeName(graph: JobGraph, edge: Edge): string {
  const [from, to] = [graph.operators[edge.from], graph.operators[edge.to]];
  return JSON.stringify([from?.uid, edge.side ?? null, to?.uid, edge.input]);
}
