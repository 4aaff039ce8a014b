import type { Epoch } from '@millrace/aec';
import { assert, MillraceError } from '@millrace/kernel';
import type { AccessScope, KeyValue, StateEntry, StateFacade, StateShape } from '@millrace/state';
import type { LogicContext, LogicPane, SpawnedWork, Timers } from '../api/process.ts';
import type { SideTag } from '../api/side-tag.ts';
import type { KeyedOperator } from './keyed-operator.ts';
import { KeyedPane } from './keyed-pane.ts';
import { PaneTimers } from './pane-timers.ts';

/** `KeyedCall.input` of what came from no input. */
export const timerInput = -1;
export const spawnedInput = -2;
export const processingTimerInput = -3;

/**
 * One record, timer or spawned piece of work on its way through a keyed operator: the unit that the controller orders, the context that the
 * handler gets, and the scope that its state accesses are counted in. Sealed when the handler settles; what a
 * handler did not await is found then, and what it does later is refused.
 */
export class KeyedCall implements LogicContext, AccessScope, Timers {
  readonly key: unknown;
  readonly namespace: KeyValue | undefined;
  readonly timestampMs: number;
  readonly watermarkMs: number;
  readonly value: unknown;
  /** The input that the record came from; or `timerInput`, `spawnedInput`, `processingTimerInput`. */
  readonly input: number;
  pendingAccesses = 0;
  entry: StateEntry | undefined;
  /** Of other namespaces, pinned until the handler settles. */
  paneEntries: StateEntry[] | undefined;
  /** The controller's, from when the handler starts: what is spawned belongs to it, too. */
  epoch: Epoch | undefined;
  /** A timer that a watermark fires, or spawned by one: the watermark's other timers wait for it. */
  ofAdvance = false;
  #sealed = false;
  readonly #host: KeyedOperator;
  #facade: StateFacade<StateShape> | undefined;
  #processingTimers: Timers | undefined;

  constructor(
    host: KeyedOperator,
    key: unknown,
    namespace: KeyValue | undefined,
    timestampMs: number,
    watermarkMs: number,
    value: unknown,
    input: number,
  ) {
    this.#host = host;
    this.key = key;
    this.namespace = namespace;
    this.timestampMs = timestampMs;
    this.watermarkMs = watermarkMs;
    this.value = value;
    this.input = input;
  }

  /** Asked by a state handle before it acts. When the handler has ended the access is refused, and the operator fails. */
  get open(): boolean {
    if (this.#sealed) this.#refuse('state');
    return !this.#sealed;
  }

  get state(): StateFacade<StateShape> {
    this.#facade ??= this.#host.facade(this.#pinned, this);
    return this.#facade;
  }

  get timers(): Timers {
    return this;
  }

  get processingTimers(): Timers {
    this.#processingTimers ??= new PaneTimers(this.#host, this, this.#pinned, 'processing');
    return this.#processingTimers;
  }

  get processingMs(): number {
    return this.#host.processingMs();
  }

  in(namespace: KeyValue | undefined): LogicPane {
    this.checkOpen('in');
    const entry = this.#host.enterPane(this, namespace);
    this.paneEntries ??= [];
    this.paneEntries.push(entry);
    return new KeyedPane(this.#host, this, entry);
  }

  late(): void {
    this.checkOpen('late');
    this.#host.late(this.value, this.timestampMs, this.input);
  }

  emit(value: unknown, timestampMs = this.timestampMs): void {
    if (this.#sealed) throw this.#refuse('emit');
    this.#host.emit(value, timestampMs, undefined);
  }

  side<X>(tag: SideTag<X>, value: X): void {
    if (this.#sealed) throw this.#refuse('side');
    this.#host.emit(value, this.timestampMs, tag.name);
  }

  spawn(work: SpawnedWork<unknown, StateShape, unknown>): void {
    if (this.#sealed) throw this.#refuse('spawn');
    this.#host.spawn(this, work);
  }

  at(timeMs: number): void {
    if (this.#sealed) throw this.#refuse('timers.at');
    this.#host.registerTimer(this.#pinned, 'event', timeMs);
  }

  delete(timeMs: number): void {
    if (this.#sealed) throw this.#refuse('timers.delete');
    this.#host.deleteTimer(this.#pinned, 'event', timeMs);
  }

  enter(): void {
    this.pendingAccesses++;
  }

  leave(): void {
    this.pendingAccesses--;
  }

  /** The handler has settled. */
  seal(): void {
    this.#sealed = true;
    if (this.pendingAccesses === 0) return;
    throw new MillraceError(
      'aec-unawaited-access',
      `the handler of ${this.#host.uid} ended while ${this.pendingAccesses} of its state accesses were under way; await each of them`,
      { details: { operator: this.#host.uid } },
    );
  }

  checkOpen(what: string): void {
    if (this.#sealed) throw this.#refuse(what);
  }

  get #pinned(): StateEntry {
    assert(this.entry !== undefined, 'state or timers used before their call had begun');
    return this.entry;
  }

  /** Fails the operator, too: whoever catches the error must not go on with half of a record. */
  #refuse(what: string): MillraceError {
    const error = new MillraceError(
      'aec-access-after-finish',
      `${what} was used after the handler of ${this.#host.uid} had ended; await everything that the handler starts`,
      { details: { operator: this.#host.uid } },
    );
    this.#host.fail(error);
    return error;
  }
}
