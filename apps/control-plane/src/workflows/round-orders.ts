import { operationSignals, type RoundOrder, type RoundReply } from '@millrace/proto/control';
import { condition, getExternalWorkflowHandle, isCancellation, sleep } from '@temporalio/workflow';

/** A loop that does not run yet is told again after this time. */
const againMs = 100;

export interface OrderHost {
  /** The checkpoint loop of the attempt that runs; undefined while none does. */
  readonly loop: string | undefined;
  readonly ended: boolean;
}

/** Rounds that a job orders from the checkpoint loops of its attempts, and their answers. */
export class RoundOrders {
  readonly #host: OrderHost;
  readonly #replies = new Map<string, RoundReply | undefined>();

  constructor(host: OrderHost) {
    this.#host = host;
  }

  /** An answer came. */
  done(reply: RoundReply): void {
    if (this.#replies.has(reply.operation)) this.#replies.set(reply.operation, reply);
  }

  /**
   * Resolves with the answer. Each attempt that begins is given the order anew, until one answers. Undefined when the
   * job ended, or `isOff` before.
   */
  async serve(order: RoundOrder, isOff: () => boolean = () => false): Promise<RoundReply | undefined> {
    const { operation } = order;
    const host = this.#host;
    const isOver = (): boolean => host.ended || isOff();
    const replied = (): RoundReply | undefined => this.#replies.get(operation);
    this.#replies.set(operation, undefined);
    try {
      for (;;) {
        await condition(() => host.loop !== undefined || isOver());
        const { loop } = host;
        if (loop === undefined || isOver()) return undefined;
        if (!(await tell(loop, order))) {
          await sleep(againMs, { summary: 'the attempt begins its rounds' });
          continue;
        }
        await condition(() => replied() !== undefined || host.loop !== loop || isOver());
        if (replied() !== undefined) return replied();
      }
    } finally {
      this.#replies.delete(operation);
    }
  }
}

async function tell(loop: string, order: RoundOrder): Promise<boolean> {
  try {
    await getExternalWorkflowHandle(loop).signal(operationSignals.orderRound, order);
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}
