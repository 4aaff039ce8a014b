import type { JobGraph } from '../graph/job-graph.ts';
import type { Overtaken, WaitingInChain } from './chain.ts';
import { edgeName } from './edge-name.ts';
import type { InFlightChannel } from './in-flight.ts';
import type { Captured } from './input-gate.ts';

/** What was under way around one chain when a barrier overtook it. */
export interface InFlightAround {
  readonly inputs: readonly Captured[];
  readonly waiting: readonly WaitingInChain[];
  readonly outputs: ReadonlyArray<Overtaken & { readonly elements: Uint8Array }>;
}

/** The same as a checkpoint names it. Inputs are listed also when nothing waited: where their time was counts. */
export function inFlightChannels(graph: JobGraph, around: InFlightAround, subtask: number): InFlightChannel[] {
  const channel = (place: InFlightChannel['place'], id: number, elements: Uint8Array): InFlightChannel => {
    const edge = graph.edges[id] as JobGraph['edges'][number];
    const names = { place, edge: edgeName(graph, edge), format: edge.codec.format, from: subtask, to: subtask };
    return { ...names, watermarkMs: Number.NEGATIVE_INFINITY, idle: false, elements };
  };
  const inputs = around.inputs.map(({ channel: { edge, fromSlot: from }, watermarkMs, idle, elements }) => {
    return { ...channel('in', edge, elements), from, watermarkMs, idle };
  });
  const waiting = around.waiting.map(({ edge, elements }) => channel('chain', edge, elements));
  const outputs = around.outputs.map(({ edge, toSlot: to, elements }) => ({ ...channel('out', edge, elements), to }));
  return [...inputs, ...[...waiting, ...outputs].filter(({ elements }) => elements.length > 0)];
}
