import type { JobGraph, OperatorNode } from '../graph/job-graph.ts';
import { Chain, type ChainMember } from './chain.ts';
import { ChainLink } from './chain-link.ts';
import { ChainOutput } from './chain-output.ts';
import { type EdgeOutput, edgeOutput, type Target } from './edge-output.ts';
import type { InputChannel } from './input-channel.ts';
import { InputGate } from './input-gate.ts';
import { InputTask } from './input-task.ts';
import { LocalChannel } from './local-channel.ts';
import type { OutputChannel } from './output-channel.ts';
import { type ChainPlan, type PhysicalPlan, physicalPlan } from './physical-plan.ts';
import { RemoteInput } from './remote-input.ts';
import { RemoteOutput } from './remote-output.ts';
import type { SlotContext } from './slot.ts';
import { SourceTask } from './source-task.ts';
import type { Task, TaskHost } from './task.ts';

/** What a slot is made of. */
export interface WiredSlot {
  readonly plan: PhysicalPlan;
  /** By chain. */
  readonly tasks: readonly Task[];
  /** By edge, then by slot; holes for channels that do not exist. */
  readonly remoteInputs: ReadonlyArray<ReadonlyMap<number, RemoteInput>>;
  readonly remoteOutputs: ReadonlyArray<ReadonlyMap<number, RemoteOutput>>;
}

export interface WiringHost extends TaskHost {
  /** Marks an operator as the failed one, and returns what to throw. */
  operatorFailed(uid: string, error: unknown): unknown;
}

/**
 * Records that may wait between two tasks of one slot. Their size is unknown, so the byte window is taken for records
 * of 128 bytes; small enough that a barrier is not long behind them.
 */
function localWindowRecords(channelWindowBytes: number): number {
  return Math.min(1024, Math.max(8, Math.floor(channelWindowBytes / 128)));
}

/** Builds tasks, channels and outputs of one slot; opens nothing. */
export function wireSlot(graph: JobGraph, context: SlotContext, host: WiringHost): WiredSlot {
  return new Wiring(graph, context, host).wire();
}

class Wiring {
  readonly #graph: JobGraph;
  readonly #context: SlotContext;
  readonly #host: WiringHost;
  readonly #plan: PhysicalPlan;
  readonly #tasks: Task[];
  readonly #edgeOutputs: EdgeOutput[] = [];
  readonly #inputs: InputChannel[][];
  readonly #remoteInputs: Array<Map<number, RemoteInput>>;
  readonly #remoteOutputs: Array<Map<number, RemoteOutput>>;

  constructor(graph: JobGraph, context: SlotContext, host: WiringHost) {
    this.#graph = graph;
    this.#context = context;
    this.#host = host;
    this.#plan = physicalPlan(graph);
    this.#tasks = this.#plan.chains.map((chain) =>
      chain.inputs.length === 0 ? new SourceTask(chain.id, host) : new InputTask(chain.id, host),
    );
    this.#inputs = this.#plan.chains.map(() => []);
    this.#remoteInputs = graph.edges.map(() => new Map());
    this.#remoteOutputs = graph.edges.map(() => new Map());
  }

  wire(): WiredSlot {
    for (const chain of this.#plan.chains) for (const edge of chain.inputs) this.#channelsOf(edge.id);
    for (const chain of this.#plan.chains) this.#wireChain(chain);
    return {
      plan: this.#plan,
      tasks: this.#tasks,
      remoteInputs: this.#remoteInputs,
      remoteOutputs: this.#remoteOutputs,
    };
  }

  /** Both this slot's ends of every channel of one edge. */
  #channelsOf(edgeId: number): void {
    const { settings, transport, subtask, parallelism, maxParallelism } = this.#context;
    const edge = this.#graph.edges[edgeId] as JobGraph['edges'][number];
    const producer = this.#tasks[this.#plan.chainOf[edge.from] as number] as Task;
    const consumerId = this.#plan.chainOf[edge.to] as number;
    const consumer = this.#tasks[consumerId] as InputTask;
    const outputs: OutputChannel[] = [];
    const slots = edge.partitioning.kind === 'forward' ? [subtask] : Array.from({ length: parallelism }, (_, i) => i);
    for (const slot of slots) {
      if (slot === subtask) {
        const place = { edge: edgeId, input: edge.input, slot };
        const records = localWindowRecords(settings.channelWindowBytes);
        const bounds = { records, captureBytesMax: settings.channelWindowBytes * 2 };
        const channel = new LocalChannel(place, edge.codec, bounds, { producer, consumer });
        outputs.push(channel);
        this.#inputs[consumerId]?.push(channel);
        continue;
      }
      const { frameBytes, frameDelayMs, channelWindowBytes: windowBytes } = settings;
      const wiring = { transport, producer, timer: this.#host.timer, frameBytes, frameDelayMs };
      const output = new RemoteOutput({ edge: edgeId, toSlot: slot }, edge.codec, wiring);
      const place = { edge: edgeId, input: edge.input, fromSlot: slot };
      const input = new RemoteInput(place, edge.codec, { transport, consumer, windowBytes });
      outputs.push(output);
      this.#inputs[consumerId]?.push(input);
      this.#remoteOutputs[edgeId]?.set(slot, output);
      this.#remoteInputs[edgeId]?.set(slot, input);
    }
    this.#edgeOutputs[edgeId] = edgeOutput(edge, outputs, { subtask, maxParallelism });
  }

  #wireChain(plan: ChainPlan): void {
    const task = this.#tasks[plan.id] as Task;
    const links = new Map<number, ChainLink>();
    const members: ChainMember[] = [];
    // Consumers first: an output needs the links it calls.
    for (const node of plan.operators.toReversed()) {
      const member = this.#member(node, task, links, node === plan.operators[0]);
      if (member.link !== undefined) links.set(node.id, member.link);
      members.unshift(member);
    }
    const own = new Set(plan.operators.map((node) => node.id));
    const leaving = this.#graph.edges.filter((edge) => own.has(edge.from) && !links.has(edge.to));
    const edges = leaving.map((edge) => this.#edgeOutputs[edge.id] as EdgeOutput);
    task.chain = new Chain(members, edges, this.#context.subtask);
    if (task instanceof InputTask) task.gate = new InputGate(this.#inputs[plan.id] as InputChannel[]);
  }

  #member(node: OperatorNode, task: Task, links: ReadonlyMap<number, ChainLink>, isHead: boolean): ChainMember {
    const main: Target[] = [];
    const sides = new Map<string, Target[]>();
    for (const edge of this.#graph.edges) {
      if (edge.from !== node.id) continue;
      const target = links.get(edge.to) ?? (this.#edgeOutputs[edge.id] as EdgeOutput);
      if (edge.side === undefined) main.push(target);
      else sides.set(edge.side, [...(sides.get(edge.side) ?? []), target]);
    }
    const operator = node.create();
    const failed = (error: unknown): unknown => this.#host.operatorFailed(node.uid, error);
    const edge = this.#graph.edges.find(({ to }) => to === node.id);
    const link = isHead || edge === undefined ? undefined : new ChainLink(edge, operator, task, failed);
    return { uid: node.uid, operator, output: new ChainOutput(main, sides), link, failed };
  }
}
