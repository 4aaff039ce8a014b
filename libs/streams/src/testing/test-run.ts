import {
  ByteWriter,
  type Clock,
  isPending,
  keyGroupOf,
  keyGroupRange,
  SeededRandom,
  subtaskOfKeyGroup,
  systemClock,
} from '@millrace/kernel';
import { MemoryStateStore, type SnapshotHandle, type StateStore } from '@millrace/state';
import { noTelemetry } from '@millrace/telemetry';
import { type Edge, isSourceOperator, type JobGraph } from '../graph/job-graph.ts';
import { chosen } from '../runtime/edge-output.ts';
import type { Operator, Output, SourceOperator } from '../runtime/operator.ts';
import { checkRestoreFits } from '../runtime/restore-fit.ts';
import type { OperatorSnapshot, SlotContext } from '../runtime/slot.ts';
import type { SlotTransport } from '../runtime/transport.ts';

export interface TestRunOptions {
  readonly parallelism?: number;
  readonly maxParallelism?: number;
  readonly store?: StateStore;
  readonly clock?: Clock;
  readonly inFlightLimit?: number;
  readonly workingSetBytes?: number;
  readonly generation?: number;
  readonly lineage?: string;
  /** Identity of the job's state; default: the name of the job. */
  readonly job?: string;
  /** A checkpoint of an earlier run. */
  readonly restore?: TestCheckpoint;
  /** Restore also when operators with state have come or gone, as the job's input may say. */
  readonly allowDroppedState?: boolean;
}

export interface TestCheckpoint {
  readonly number: number;
  readonly operators: readonly OperatorSnapshot[];
  readonly ended: boolean;
}

interface Element {
  readonly kind: 'record' | 'watermark' | 'status';
  readonly value: unknown;
  readonly timeMs: number;
  readonly input: number;
  readonly from: string;
}

/** A subtask of an operator, with a queue in front and the watermarks of its inputs. */
interface Member {
  readonly node: number;
  readonly subtask: number;
  readonly operator: Operator;
  readonly queue: Element[];
  readonly watermarks: Map<string, number>;
  watermarkMs: number;
  ended: boolean;
}

/**
 * Runs a job's graph in one thread and one loop, in order and with nothing in flight between operators at a checkpoint: the
 * plainest driver of the operator contract, for tests of operators and of jobs.
 */
export class TestRun {
  readonly #graph: JobGraph;
  readonly #options: TestRunOptions;
  readonly #parallelism: number;
  readonly #maxParallelism: number;
  readonly #members: Member[][] = [];
  readonly #scratch = new ByteWriter(256);
  #round: number;
  #spread = 0;
  #failure: unknown;

  private constructor(graph: JobGraph, options: TestRunOptions) {
    this.#graph = graph;
    this.#options = options;
    this.#parallelism = options.parallelism ?? 1;
    this.#maxParallelism = options.maxParallelism ?? 128;
    this.#round = options.restore?.number ?? 0;
  }

  /** Opens every operator, restoring where a checkpoint is given. */
  static async start(graph: JobGraph, options: TestRunOptions = {}): Promise<TestRun> {
    const run = new TestRun(graph, options);
    await run.#open();
    return run;
  }

  /** Polls every source `polls` times and lets everything flow. True when all sources have ended. */
  async step(polls = 1, recordsMax = 100): Promise<boolean> {
    for (let i = 0; i < polls && !this.ended; i++) {
      for (const member of this.#sources()) {
        if (!member.ended) await this.#poll(member, recordsMax);
      }
      await this.#flow();
    }
    return this.ended;
  }

  /** Runs until every source has ended. */
  async toEnd(recordsMax = 1000): Promise<void> {
    while (!(await this.step(1, recordsMax)));
    await this.#rest();
  }

  /** A checkpoint of everything read so far. Not registered: call {@link complete}. */
  async checkpoint(): Promise<TestCheckpoint> {
    await this.#rest();
    const number = ++this.#round;
    const parts = this.#all().map(async ({ node, subtask, operator }): Promise<OperatorSnapshot> => {
      const part = await operator.snapshot(number);
      return { operator: this.#uid(node), subtask, ...part };
    });
    const operators = await Promise.all(parts);
    // As through the checkpoint object: only what JSON keeps comes back.
    return JSON.parse(JSON.stringify({ number, operators, ended: this.ended })) as TestCheckpoint;
  }

  /** The checkpoint is registered: sinks publish. */
  async complete(checkpoint: TestCheckpoint): Promise<void> {
    for (const member of this.#all()) await member.operator.complete(checkpoint.number);
  }

  /** To the end, with the final checkpoint registered, and closed. */
  async finish(): Promise<TestCheckpoint> {
    await this.toEnd();
    const checkpoint = await this.checkpoint();
    await this.complete(checkpoint);
    await this.close();
    return checkpoint;
  }

  /** Lets everything go at once, as a crash would, but for open handles. */
  async close(): Promise<void> {
    for (const member of this.#all()) await member.operator.close();
  }

  get ended(): boolean {
    return this.#sources().every((member) => member.ended);
  }

  /** The operators' subtasks with this uid. */
  operators(uid: string): readonly Operator[] {
    return this.#all()
      .filter((member) => this.#uid(member.node) === uid)
      .map((member) => member.operator);
  }

  #uid(node: number): string {
    return this.#graph.operators[node]?.uid ?? '';
  }

  #all(): readonly Member[] {
    return this.#members.flat();
  }

  #sources(): readonly Member[] {
    return this.#all().filter((member) => isSourceOperator(member.operator));
  }

  async #open(): Promise<void> {
    const { restore, allowDroppedState } = this.#options;
    checkRestoreFits(this.#graph, { restore: restore?.operators, allowDroppedState });
    const store = this.#options.store ?? new MemoryStateStore();
    const slots = Array.from({ length: this.#parallelism }, (_, subtask) => this.#slot(store, subtask));
    for (const node of this.#graph.operators) {
      this.#members.push(
        slots.map((slot) => ({
          node: node.id,
          subtask: slot.subtask,
          operator: node.create(),
          queue: [],
          watermarks: new Map(),
          watermarkMs: Number.NEGATIVE_INFINITY,
          ended: false,
        })),
      );
    }
    for (const edge of this.#graph.edges) {
      for (const to of this.#members[edge.to] as Member[]) {
        for (const from of this.#members[edge.from] as Member[]) {
          if (edge.partitioning.kind === 'forward' && from.subtask !== to.subtask) continue;
          to.watermarks.set(channel(edge, from.subtask), Number.NEGATIVE_INFINITY);
        }
      }
    }
    for (const node of this.#graph.operators.toReversed()) {
      for (const member of this.#members[node.id] as Member[]) await this.#openMember(member, slots);
    }
    await this.#flow();
  }

  async #openMember(member: Member, slots: readonly SlotContext[]): Promise<void> {
    const slot = slots[member.subtask] as SlotContext;
    const uid = this.#uid(member.node);
    const parts = this.#options.restore?.operators.filter((part) => part.operator === uid) ?? [];
    const overlaps = (handle: SnapshotHandle): boolean =>
      handle.keyGroups.start <= slot.keyGroups.end && handle.keyGroups.end >= slot.keyGroups.start;
    const lists = parts.flatMap((part) => part.list ?? []);
    await member.operator.open({
      slot,
      uid,
      subtask: member.subtask,
      keyGroups: slot.keyGroups,
      output: this.#output(member),
      restoredTables: parts.flatMap((part) => (part.table !== undefined && overlaps(part.table) ? [part.table] : [])),
      restoredList:
        this.#options.restore === undefined
          ? undefined
          : lists.filter((_, index) => index % this.#parallelism === member.subtask),
      fail: (error) => {
        this.#failure ??= error;
      },
    });
  }

  #slot(store: StateStore, subtask: number): SlotContext {
    return {
      job: this.#options.job ?? this.#graph.name,
      generation: this.#options.generation ?? 1,
      lineage: this.#options.lineage,
      subtask,
      parallelism: this.#parallelism,
      maxParallelism: this.#maxParallelism,
      keyGroups: keyGroupRange(subtask, this.#parallelism, this.#maxParallelism),
      settings: {
        inFlightLimit: this.#options.inFlightLimit ?? 100,
        workingSetBytes: this.#options.workingSetBytes ?? 64 * 1024 * 1024,
        frameBytes: 1,
        frameDelayMs: 1,
        channelWindowBytes: 1,
      },
      store,
      transport: noTransport,
      clock: this.#options.clock ?? systemClock,
      random: new SeededRandom(1),
      telemetry: noTelemetry,
      restore: this.#options.restore?.operators,
    };
  }

  async #poll(member: Member, recordsMax: number): Promise<void> {
    const poll = (member.operator as SourceOperator).poll(recordsMax);
    if (isPending(poll as void | Promise<void>)) return poll as unknown as Promise<void>;
    if (poll === 'end') member.ended = true;
  }

  #output(member: Member): Output {
    const edges = this.#graph.edges.filter((edge) => edge.from === member.node);
    const all = (element: Omit<Element, 'input' | 'from'>): void => {
      for (const edge of edges) for (const to of this.#targets(edge, member)) push(to, edge, member, element);
    };
    return {
      emit: (value, timeMs, side) => {
        for (const edge of edges) {
          if (edge.side !== side) continue;
          for (const to of this.#route(edge, member, value)) push(to, edge, member, { kind: 'record', value, timeMs });
        }
      },
      watermark: (timeMs) => all({ kind: 'watermark', value: undefined, timeMs }),
      status: (idle) => all({ kind: 'status', value: idle, timeMs: 0 }),
    };
  }

  #targets(edge: Edge, from: Member): readonly Member[] {
    const targets = this.#members[edge.to] as Member[];
    return edge.partitioning.kind === 'forward' ? [targets[from.subtask] as Member] : targets;
  }

  #route(edge: Edge, from: Member, value: unknown): readonly Member[] {
    const targets = this.#targets(edge, from);
    const { partitioning } = edge;
    if (partitioning.kind === 'rebalance') return [targets[this.#spread++ % targets.length] as Member];
    if (partitioning.kind === 'custom') {
      return [
        targets[chosen(partitioning.choose as (value: unknown, n: number) => number, value, targets.length)] as Member,
      ];
    }
    if (partitioning.kind !== 'hash') return targets;
    const scratch = this.#scratch;
    scratch.reset();
    partitioning.keyCodec.encode(partitioning.key(value as never) as never, scratch);
    const group = keyGroupOf(scratch.bytes, 0, scratch.position, this.#maxParallelism);
    return [targets[subtaskOfKeyGroup(group, this.#parallelism, this.#maxParallelism)] as Member];
  }

  /** Works off every queue, producers before consumers, until all are empty. */
  async #flow(): Promise<void> {
    for (let busy = true; busy; ) {
      busy = false;
      for (const member of this.#all()) {
        const elements = member.queue.splice(0);
        for (const element of elements) {
          const pending = this.#give(member, element);
          if (pending !== undefined) await pending;
        }
        busy ||= elements.length > 0;
      }
      this.#throwFailure();
    }
  }

  /** As {@link #flow}, and until no operator has anything in flight. */
  async #rest(): Promise<void> {
    do {
      await this.#flow();
      for (const member of this.#all()) await member.operator.drain();
      this.#throwFailure();
    } while (this.#all().some((member) => member.queue.length > 0 || member.operator.inFlight() > 0));
  }

  #give(member: Member, element: Element): void | Promise<void> {
    if (element.kind === 'record') return member.operator.record(element.value, element.timeMs, element.input);
    const { watermarks } = member;
    if (element.kind === 'status') return member.operator.status(element.value as boolean);
    watermarks.set(element.from, element.timeMs);
    const smallest = Math.min(...watermarks.values());
    if (smallest <= member.watermarkMs) return;
    member.watermarkMs = smallest;
    return member.operator.watermark(smallest);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function channel(edge: Edge, fromSubtask: number): string {
  return `${edge.id}/${fromSubtask}`;
}

function push(to: Member, edge: Edge, from: Member, element: Omit<Element, 'input' | 'from'>): void {
  to.queue.push({ ...element, input: edge.input, from: channel(edge, from.subtask) });
}

const noTransport: SlotTransport = { send: () => undefined, grant: () => undefined, listen: () => undefined };
