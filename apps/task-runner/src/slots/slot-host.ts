import type { MessagePort, Worker } from 'node:worker_threads';
import { type Clock, errorFromJson, errorToJson, MillraceError, type Timer } from '@millrace/kernel';
import type { Barrier, SlotSnapshot, SlotStats } from '@millrace/streams';
import type { MetricFamily } from '@millrace/telemetry';
import type { SlotDeployment, SlotReport, SlotRequest } from './slot-protocol.ts';

/** How long a cancelled slot may take to end by itself before its thread is stopped. */
const cancelGraceMs = 2000;

type Life =
  | { readonly kind: 'starting' }
  | { readonly kind: 'running' }
  | { readonly kind: 'finished' }
  | { readonly kind: 'failed'; readonly error: MillraceError };

/** A request sent and not answered. */
type RequestWithId = Extract<SlotRequest, { readonly id: number }>;
/** As the caller gives it, before it has an id; distributes over the union. */
type Unsent<T> = T extends unknown ? Omit<T, 'id'> : never;

interface Waiting {
  resolve(value: SlotSnapshot | undefined): void;
  reject(error: Error): void;
}

function portsOf(port: MessagePort | undefined): MessagePort[] {
  return port === undefined ? [] : [port];
}

/** The main thread's side of one slot: starts its thread, talks to it, and notices its death. */
export class SlotHost {
  readonly subtask: number;
  /** Resolves when the slot is restored and runs; rejects with its failure. */
  readonly opened: Promise<void>;
  /** Resolves when the slot has finished after the last checkpoint; rejects with its failure. */
  readonly done: Promise<void>;
  /** Resolves when the inputs of this slot have ended; may never. */
  readonly inputsEnded: Promise<void>;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #exited: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #openedSettle = Promise.withResolvers<void>();
  readonly #doneSettle = Promise.withResolvers<void>();
  readonly #endedSettle = Promise.withResolvers<void>();
  #life: Life = { kind: 'starting' };
  #stats: SlotStats | undefined;
  #metrics: readonly MetricFamily[] = [];
  #nextId = 0;
  #terminator: Timer | undefined;
  #cancelledFor: MillraceError | undefined;

  /** `worker` waits for its deployment (`SlotWorkers`) and is this object's from now on. */
  constructor(worker: Worker, deployment: SlotDeployment, clock: Clock) {
    this.subtask = deployment.subtask;
    this.#clock = clock;
    this.opened = this.#openedSettle.promise;
    this.done = this.#doneSettle.promise;
    this.inputsEnded = this.#endedSettle.promise;
    this.opened.catch(() => undefined);
    this.done.catch(() => undefined);
    this.#worker = worker;
    this.#worker.postMessage({ kind: 'deploy', deployment } satisfies SlotRequest, [
      ...deployment.ports.map(([, port]) => port),
      ...portsOf(deployment.compactions),
    ]);
    this.#worker.on('message', (message: SlotReport) => this.#receive(message));
    this.#worker.on('error', (error) => this.#fail(this.#lost(error)));
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#terminator?.cancel();
        // A thread that was stopped because it did not leave in time is no failure of its own.
        this.#fail(this.#cancelledFor ?? this.#lost(new Error(`its thread ended with code ${code}`)));
        resolve();
      });
    });
  }

  /** Figures of at most a fraction of a second ago; undefined before the slot runs. */
  get stats(): SlotStats | undefined {
    return this.#stats;
  }

  get metrics(): readonly MetricFamily[] {
    return this.#metrics;
  }

  checkpoint(barrier: Barrier): Promise<SlotSnapshot> {
    return this.#ask({ kind: 'checkpoint', ...barrier }) as Promise<SlotSnapshot>;
  }

  async complete(checkpoint: number, last: boolean): Promise<void> {
    if (this.#life.kind === 'finished') return;
    await this.#ask({ kind: 'complete', checkpoint, last });
  }

  /** The slot's sources read nothing more. */
  endInputs(): void {
    if (this.#alive) this.#post({ kind: 'end-inputs' });
  }

  abort(checkpoint: number): void {
    if (this.#alive) this.#post({ kind: 'abort', checkpoint });
  }

  /** Stops the slot without a checkpoint; resolves when its thread has ended. Idempotent. */
  async cancel(reason: Error): Promise<void> {
    this.#cancelledFor ??= MillraceError.from(reason, 'cancelled');
    if (this.#alive) this.#post({ kind: 'cancel', error: errorToJson(this.#cancelledFor) });
    // A handler that never gives the thread back cannot hear the request.
    this.#terminator ??= this.#clock.schedule(cancelGraceMs, () => void this.#worker.terminate());
    await this.#exited;
  }

  /** Stops the thread at once, as a crash would. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  get #alive(): boolean {
    return this.#life.kind === 'starting' || this.#life.kind === 'running';
  }

  #ask(request: Unsent<RequestWithId>): Promise<SlotSnapshot | undefined> {
    if (this.#life.kind === 'failed') return Promise.reject(this.#life.error);
    if (this.#life.kind === 'finished') {
      return Promise.reject(new MillraceError('attempt-unknown', `slot ${this.subtask} has finished`));
    }
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ ...request, id } as RequestWithId);
    });
  }

  #post(request: SlotRequest): void {
    this.#worker.postMessage(request);
  }

  #receive(message: SlotReport): void {
    switch (message.kind) {
      case 'opened':
        if (this.#life.kind === 'starting') this.#life = { kind: 'running' };
        return this.#openedSettle.resolve();
      case 'snapshot':
        return this.#answer(message.id, (waiting) => waiting.resolve(message.snapshot));
      case 'completed':
        return this.#answer(message.id, (waiting) => waiting.resolve(undefined));
      case 'refused':
        return this.#answer(message.id, (waiting) => waiting.reject(errorFromJson(message.error)));
      case 'stats':
        this.#stats = message.stats;
        if (message.stats.ended) this.#endedSettle.resolve();
        return;
      case 'metrics':
        this.#metrics = message.families;
        return;
      case 'finished':
        if (this.#alive) this.#life = { kind: 'finished' };
        this.#doneSettle.resolve();
        return this.#answerAll((waiting) => waiting.resolve(undefined));
      case 'failed':
        return this.#fail(errorFromJson(message.error));
    }
  }

  #answer(id: number, how: (waiting: Waiting) => void): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting !== undefined) how(waiting);
  }

  #answerAll(how: (waiting: Waiting) => void): void {
    for (const id of this.#waiting.keys()) this.#answer(id, how);
  }

  #fail(error: MillraceError): void {
    if (!this.#alive) return;
    this.#life = { kind: 'failed', error };
    this.#openedSettle.reject(error);
    this.#doneSettle.reject(error);
    this.#answerAll((waiting) => waiting.reject(error));
  }

  #lost(error: unknown): MillraceError {
    const message = error instanceof Error ? error.message : String(error);
    const outOfMemory = (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
    const code = outOfMemory ? 'slot-out-of-memory' : 'slot-lost';
    return new MillraceError(code, `slot ${this.subtask}: ${message}`, {
      details: { subtask: this.subtask },
      cause: error,
    });
  }
}
