import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { errorToJson, MillraceError } from '@millrace/kernel';
import type { CompactionRequest, CompactionResponse, Compactions } from './compaction-messages.ts';

/** Of one slot under way at once; what is more is done by the slot. */
const compactionsMax = 64;

/** The main thread's side: passes what slots ask for on. When a slot is gone its compactions are given up. */
export class CompactionBroker {
  readonly #compactions: Compactions;

  constructor(compactions: Compactions) {
    this.#compactions = compactions;
  }

  /** A port for one slot, to be transferred to its thread. */
  connect(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    const running = new Map<number, AbortController>();
    port1.on('message', (request: CompactionRequest) => {
      if (request.kind === 'cancel') running.get(request.id)?.abort(givenUp());
      else void this.#serve(port1, running, request);
    });
    port1.on('close', () => {
      for (const controller of running.values()) controller.abort(givenUp());
    });
    port1.unref();
    return port2;
  }

  async #serve(
    port: MessagePort,
    running: Map<number, AbortController>,
    { id, task, timeoutMs }: Extract<CompactionRequest, { kind: 'compact' }>,
  ): Promise<void> {
    const controller = new AbortController();
    running.set(id, controller);
    let response: CompactionResponse;
    try {
      if (running.size > compactionsMax) throw new MillraceError('compaction-failed', 'too many are under way');
      response = { id, result: await this.#compactions.compact(task, timeoutMs, controller.signal) };
    } catch (error) {
      response = { id, error: errorToJson(error) };
    }
    running.delete(id);
    port.postMessage(response);
  }
}

function givenUp(): MillraceError {
  return new MillraceError('cancelled', 'the slot has given the compaction up');
}
