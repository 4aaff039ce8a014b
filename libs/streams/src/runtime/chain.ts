import type { MaybePromise } from '@millrace/kernel';
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

/** What a barrier overtook at the writing end of one channel. */
export interface Overtaken {
  readonly edge: number;
  readonly toSlot: number;
  readonly elements: MaybePromise<Uint8Array>;
}

/** What waits between two operators of a chain. */
export interface WaitingInChain {
  readonly edge: number;
  readonly elements: Uint8Array;
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
      await this.#drain(member);
    }
  }

  /** True when the last `drain` left nothing: no operator got anything after it had been drained. */
  get drained(): boolean {
    return this.#passedBefore === this.#passed() && this.#atRest();
  }

  /**
   * Drains every operator by itself: what one emits waits before the next. Takes as long as what the operators have
   * begun, whatever waits between them. `release` has to follow.
   */
  async hold(): Promise<void> {
    const returned = this.members.map((member) => member.link?.hold());
    for (const call of returned) await call;
    for (const member of this.members) await this.#drain(member);
  }

  /** True when no operator has begun anything after the last `hold`. */
  get held(): boolean {
    return this.#atRest();
  }

  /** What waits between the operators, as of now. */
  waiting(): readonly WaitingInChain[] {
    return this.members.flatMap(({ link }) => {
      return link === undefined ? [] : [{ edge: link.edge, elements: link.packWaiting() }];
    });
  }

  release(): void {
    for (const member of this.members) member.link?.release();
  }

  inFlight(): number {
    return this.members.reduce((sum, { operator }) => sum + operator.inFlight() + operator.buffered(), 0);
  }

  /**
   * Snapshots every operator, as of this call. Resolves when all parts are durable; rejects with an error that names the
   * operator. `forward` has to follow in the same turn: no result of a later record can leave before the barrier.
   */
  snapshot(checkpoint: number, parent: string | undefined): Promise<readonly OperatorSnapshot[]> {
    return Promise.all(this.members.map((member) => this.#snapshot(member, checkpoint, parent)));
  }

  /** Sends the barrier on; the answer is what it overtook here. */
  forward(barrier: Barrier): readonly Overtaken[] {
    return this.edges.flatMap((output) => {
      const overtaken = output.barrier(barrier);
      return output.channels.map(({ toSlot }, i) => {
        return { edge: output.edge, toSlot, elements: overtaken[i] as MaybePromise<Uint8Array> };
      });
    });
  }

  /** What was in flight in the restored checkpoint has passed here. */
  replayed(): void {
    for (const edge of this.edges) edge.replayed();
  }

  end(): void {
    for (const edge of this.edges) edge.end();
  }

  flushIdle(nowMs: number): void {
    for (const edge of this.edges) for (const channel of edge.channels) channel.flushIdle(nowMs);
  }

  async #drain(member: ChainMember): Promise<void> {
    try {
      await member.operator.drain();
    } catch (error) {
      throw member.failed(error);
    }
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

  #atRest(): boolean {
    return this.members.every((member) => member.operator.inFlight() === 0);
  }

  #passed(): number {
    let passed = 0;
    for (const member of this.members) passed += member.link?.passed ?? 0;
    return passed;
  }
}
