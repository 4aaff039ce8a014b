import type { MessagePort } from 'node:worker_threads';
import { errorFromJson, MillraceError } from '@millrace/kernel';
import type { CompactionResult, CompactionTask } from '@millrace/proto';
import type { CompactionRequest, CompactionResponse, Compactions } from './compaction-messages.ts';

interface Waiting {
  resolve(result: CompactionResult): void;
  reject(error: Error): void;
}

/** A slot's side of its port to the main thread: asks for compactions. */
export class CompactionCaller implements Compactions {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;
  #closed = false;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (response: CompactionResponse) => this.#settle(response));
    port.on('close', () => this.close());
    // It may not keep a thread that has nothing else to do.
    port.unref();
  }

  compact(task: CompactionTask, timeoutMs: number, signal: AbortSignal): Promise<CompactionResult> {
    if (signal.aborted) return Promise.reject(MillraceError.from(signal.reason));
    if (this.#closed) return Promise.reject(gone());
    const id = this.#nextId++;
    const cancel = (): void => {
      this.#post({ kind: 'cancel', id });
      this.#waiting.get(id)?.reject(MillraceError.from(signal.reason));
      this.#waiting.delete(id);
    };
    signal.addEventListener('abort', cancel, { once: true });
    const answer = new Promise<CompactionResult>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind: 'compact', id, task, timeoutMs });
    });
    return answer.finally(() => signal.removeEventListener('abort', cancel));
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#port.close();
    for (const waiting of this.#waiting.values()) waiting.reject(gone());
    this.#waiting.clear();
  }

  #post(request: CompactionRequest): void {
    this.#port.postMessage(request);
  }

  #settle(response: CompactionResponse): void {
    const waiting = this.#waiting.get(response.id);
    this.#waiting.delete(response.id);
    if ('result' in response) waiting?.resolve(response.result);
    else waiting?.reject(errorFromJson(response.error));
  }
}

function gone(): MillraceError {
  return new MillraceError('compaction-failed', 'the connection to the main thread is closed');
}
