import { MillraceError } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import type { Operator } from '../runtime/operator.ts';
import type { CustomPartitioning, Edge, JobGraph, OperatorNode, Partitioning } from './job-graph.ts';

/** One output of one operator, as a stream refers to it. */
export interface Port {
  readonly node: number;
  readonly side: string | undefined;
  readonly codec: Codec<never>;
  /** How the records are spread when the consumer is not keyed. */
  readonly spread: 'forward' | 'rebalance' | 'broadcast' | CustomPartitioning;
}

export interface OperatorDraft {
  readonly kind: string;
  readonly uid: string | undefined;
  readonly stateful: boolean;
  readonly role: 'source' | 'transform' | 'sink';
  readonly exclusive?: string | undefined;
  create(): Operator;
}

const uidPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Collects operators and edges while a job's function runs, and checks them. */
export class GraphBuilder {
  readonly #drafts: OperatorDraft[] = [];
  readonly #uids: string[] = [];
  readonly #edges: Edge[] = [];
  readonly #sides = new Map<string, Port>();
  readonly #kinds = new Map<string, number>();
  #finished = false;

  add(draft: OperatorDraft): number {
    if (this.#finished) throw new MillraceError('job-graph', 'streams can only be described while the job is built');
    const index = this.#kinds.get(draft.kind) ?? 0;
    this.#kinds.set(draft.kind, index + 1);
    const uid = draft.uid ?? `${draft.kind}-${index}`;
    if (!uidPattern.test(uid)) {
      throw new MillraceError('job-graph', `uid ${JSON.stringify(uid)} must match ${String(uidPattern)}`);
    }
    if (this.#uids.includes(uid)) {
      throw new MillraceError('job-graph', `two operators have the uid ${uid}; give each its own`, {
        details: { uid },
      });
    }
    this.#uids.push(uid);
    return this.#drafts.push(draft) - 1;
  }

  connect(ports: readonly Port[], to: number, keyed?: { input: number; partitioning: Partitioning }): void {
    for (const port of ports) {
      this.#edges.push({
        id: this.#edges.length,
        from: port.node,
        to,
        input: keyed?.input ?? 0,
        side: port.side,
        partitioning: keyed?.partitioning ?? (typeof port.spread === 'string' ? { kind: port.spread } : port.spread),
        codec: port.codec,
      });
    }
  }

  /** Remembers that a side output was asked for, so that one that leads nowhere is refused. */
  side(port: Port): void {
    this.#sides.set(`${port.node}/${port.side}`, port);
  }

  finish(name: string): JobGraph {
    this.#finished = true;
    this.#check(name);
    const operators = this.#drafts.map(
      (draft, id): OperatorNode => ({
        id,
        uid: this.#uids[id] as string,
        kind: draft.kind,
        stateful: draft.stateful,
        isSource: draft.role === 'source',
        create: () => draft.create(),
      }),
    );
    return { name, operators, edges: this.#edges };
  }

  #check(name: string): void {
    const refuse = (message: string): never => {
      throw new MillraceError('job-graph', `job ${name}: ${message}`);
    };
    if (!this.#drafts.some((draft) => draft.role === 'source')) refuse('it has no source');
    const exclusive = new Map<string, string>();
    for (const [id, draft] of this.#drafts.entries()) {
      const uid = this.#uids[id] as string;
      if (draft.role !== 'sink' && !this.#edges.some((edge) => edge.from === id)) {
        refuse(`the stream of ${uid} leads to no sink; end it with .to(sink)`);
      }
      if (draft.exclusive === undefined) continue;
      const other = exclusive.get(draft.exclusive);
      if (other !== undefined) refuse(`${other} and ${uid} both write ${draft.exclusive}`);
      exclusive.set(draft.exclusive, uid);
    }
    for (const port of this.#sides.values()) {
      if (this.#edges.some((edge) => edge.from === port.node && edge.side === port.side)) continue;
      refuse(`side output ${port.side} of ${this.#uids[port.node]} leads to no sink; end it with .to(sink)`);
    }
  }
}

export function checkSameJob(one: GraphBuilder, other: GraphBuilder): void {
  if (one !== other) throw new MillraceError('job-graph', 'streams of two jobs cannot flow together');
}
