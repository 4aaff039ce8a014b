import type { ChainLink } from './chain-link.ts';
import type { ChainOutput } from './chain-output.ts';
import type { EdgeOutput } from './edge-output.ts';
import type { Operator, OperatorPart } from './operator.ts';
import { operatorFailure } from './operator-failure.ts';
import type { Barrier, OperatorSnapshot } from './slot.ts';

/** One operator of a chain in this subtask, and what is around it. */
export interface ChainMember {
  readonly uid: string;
  readonly operator: Operator;
  readonly output: ChainOutput;
  /** What calls it; undefined for the head, which the task calls. */
  readonly link: ChainLink | undefined;
  /** Marks this operator as the failed one, and returns what to throw. */
  failed(error: unknown): unknown;
}

/** The operators of one task, head first, producers before consumers; and the edges that leave the task. */
export class Chain {
  readonly members: readonly ChainMember[];
  readonly edges: readonly EdgeOutput[];
  readonly #subtask: number;
  /** Elements that had passed between the operators when the last drain began. */
  #passedBefore = -1;

  constructor(members: readonly ChainMember[], edges: readonly EdgeOutput[], subtask: number) {
    this.members = members;
    this.edges = edges;
    this.#subtask = subtask;
  }

  get head(): ChainMember {
    return this.members[0] as ChainMember;
  }

  /** Drains the operators one after the other, so that what one still emits is drained by the next. */
  async drain(): Promise<void> {
    this.#passedBefore = this.#passed();
    for (const member of this.members) {
      await member.link?.settled();
      try {
        await member.operator.drain();
      } catch (error) {
        throw member.failed(error);
      }
    }
  }

  /** True when the last `drain` left nothing: no operator got anything after it had been drained. */
  get drained(): boolean {
    return this.#passedBefore === this.#passed() && this.members.every((member) => member.operator.inFlight() === 0);
  }

  inFlight(): number {
    return this.members.reduce((sum, { operator }) => sum + operator.inFlight() + operator.buffered(), 0);
  }

  /**
   * Snapshots every operator, as of this call, and forwards the barrier: no result of a later record can leave before
   * it. Resolves when all parts are durable; rejects with an error that names the operator.
   */
  snapshotAndForward(barrier: Barrier, parent: string | undefined): Promise<readonly OperatorSnapshot[]> {
    const parts = this.members.map((member) => this.#snapshot(member, barrier.checkpoint, parent));
    for (const edge of this.edges) edge.barrier(barrier);
    return Promise.all(parts);
  }

  async #snapshot(member: ChainMember, checkpoint: number, parent: string | undefined): Promise<OperatorSnapshot> {
    const { uid, operator } = member;
    const subtask = this.#subtask;
    try {
      const part: OperatorPart = await operator.snapshot(checkpoint, parent);
      return { operator: uid, subtask, ...part };
    } catch (error) {
      throw operatorFailure(error, { operator: uid, subtask });
    }
  }

  end(): void {
    for (const edge of this.edges) edge.end();
  }

  flushIdle(nowMs: number): void {
    for (const edge of this.edges) for (const channel of edge.channels) channel.flushIdle(nowMs);
  }

  #passed(): number {
    let passed = 0;
    for (const member of this.members) passed += member.link?.passed ?? 0;
    return passed;
  }
}
