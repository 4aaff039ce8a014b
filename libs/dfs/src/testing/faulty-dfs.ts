import { assert, type Clock, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Dfs, DfsEntry, DfsWriter } from '../dfs.ts';
import { type DfsOperation, DfsStats } from '../stats.ts';

/** One request, as faults see it. */
export interface DfsCall {
  /** From 1, in order of arrival. */
  readonly number: number;
  readonly operation: DfsOperation;
  readonly path: string;
}

/** `before`: the store does not get the request. `after`: it does, and the answer is lost. */
export type FaultTiming = 'before' | 'after';

export interface FaultyDfsOptions {
  /** Waited for before and after each request takes effect: latency, in whatever clock the test uses. */
  readonly delay?: (call: DfsCall, timing: FaultTiming) => Promise<void> | void;
  /** For {@link FaultyDfs.slowDown}: real, or a test's own. */
  readonly clock?: Clock;
}

/** How far away a store is. */
export interface Distance {
  /**
   * Of each request, half of it before it takes effect and half before its answer. A listing is one request; what a
   * writer takes is held by its driver, so that `createWriter` and `append` are none.
   */
  readonly latencyMs: number;
  /** Of all requests together, in both directions: they queue for it. Undefined: no limit. */
  readonly bytesPerSecond?: number;
}

/** A request held back by {@link FaultyDfs.stallWhen}. */
export interface Stall {
  /** Resolves when the first matching request has arrived. */
  readonly reached: Promise<DfsCall>;
  /** Lets it, and all others that wait, go on. */
  release(): void;
}

interface Fault {
  readonly matches: (call: DfsCall) => boolean;
  readonly timing: FaultTiming;
  /** Rejects or waits. */
  readonly strike: (call: DfsCall) => Promise<void>;
  timesLeft: number;
}

/**
 * A Dfs that misbehaves when told to: is far away (latency, bandwidth), fails before or after the effect, refuses in
 * storms (503), stalls, crashes (fails for ever), lists late.
 * One per simulated process over a shared store makes processes that crash and stall on their own.
 */
export class FaultyDfs implements Dfs {
  readonly uri: string;
  readonly stats = new DfsStats();
  readonly #inner: Dfs;
  readonly #delay: NonNullable<FaultyDfsOptions['delay']>;
  readonly #unlisted = new Map<string, number>();
  #faults: Fault[] = [];
  #calls = 0;
  #crashed = false;
  #listLagCalls = 0;
  readonly #clock: Clock | undefined;
  #distance: Distance = { latencyMs: 0 };
  #linkFreeAtMs = 0;

  constructor(inner: Dfs, options: FaultyDfsOptions = {}) {
    this.uri = inner.uri;
    this.#inner = inner;
    this.#delay = options.delay ?? (() => undefined);
    this.#clock = options.clock;
  }

  /** From now on requests take time. */
  slowDown(distance: Distance): void {
    assert(this.#clock !== undefined, 'a clock is needed for a store that is slow');
    this.#distance = distance;
  }

  /** The store refuses a share of all requests (0 … 1) with `dfs-throttled`, as a busy one does with 503, until `release`. */
  storm(share: number, random: Random): { release(): void } {
    const fault: Fault = {
      matches: () => random.float() < share,
      timing: 'before',
      strike: ({ operation, path }) =>
        Promise.reject(new MillraceError('dfs-throttled', `injected: too many requests: ${operation} ${path}`)),
      timesLeft: Number.POSITIVE_INFINITY,
    };
    this.#faults.push(fault);
    return {
      release: () => {
        fault.timesLeft = 0;
      },
    };
  }

  /** Requests that arrived so far. */
  get calls(): number {
    return this.#calls;
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  /** Fails the request with this number (from 1, counted from the opening). */
  failCall(number: number, timing: FaultTiming, error?: Error): void {
    this.failWhen((call) => call.number === number, timing, { times: 1, ...(error === undefined ? {} : { error }) });
  }

  /** Fails every matching request, or the first `times`; by default with kind `retry`. */
  failWhen(
    matches: (call: DfsCall) => boolean,
    timing: FaultTiming,
    options: { readonly times?: number; readonly error?: Error } = {},
  ): void {
    const strike = (call: DfsCall): Promise<void> => Promise.reject(options.error ?? injected(call, timing));
    this.#faults.push({ matches, timing, strike, timesLeft: options.times ?? Number.POSITIVE_INFINITY });
  }

  /** Holds back matching requests until released. */
  stallWhen(matches: (call: DfsCall) => boolean, timing: FaultTiming = 'before'): Stall {
    const reached = Promise.withResolvers<DfsCall>();
    const released = Promise.withResolvers<void>();
    const fault: Fault = {
      matches,
      timing,
      strike: (call) => {
        reached.resolve(call);
        return released.promise;
      },
      timesLeft: Number.POSITIVE_INFINITY,
    };
    this.#faults.push(fault);
    const release = (): void => {
      fault.timesLeft = 0;
      released.resolve();
    };
    return { reached: reached.promise, release };
  }

  /** From the request with this number on, before or after its effect, everything fails: the process is dead. */
  crashAt(number: number, timing: FaultTiming): void {
    this.#faults.push({
      matches: (call) => call.number >= number,
      timing,
      strike: (call) => {
        this.#crashed = true;
        return Promise.reject(injected(call, timing));
      },
      timesLeft: Number.POSITIVE_INFINITY,
    });
  }

  crash(): void {
    this.#crashed = true;
  }

  /** Listings leave out what was created through here during the last `calls` requests, as some stores do. */
  lagLists(calls: number): void {
    this.#listLagCalls = calls;
  }

  /** Forgets all faults but a crash, and is near. Requests that stall stay stalled until released. */
  heal(): void {
    this.#faults = [];
    this.#listLagCalls = 0;
    this.#distance = { latencyMs: 0 };
  }

  async put(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<void> {
    await this.#call('put', path, async () => {
      await this.#transfer(bytes.length);
      await this.#inner.put(path, bytes, parent);
      this.#created(path, bytes.length);
    });
  }

  putIfAbsent(path: string, bytes: Uint8Array, parent?: TraceContext): Promise<boolean> {
    return this.#call('putIfAbsent', path, async () => {
      await this.#transfer(bytes.length);
      const created = await this.#inner.putIfAbsent(path, bytes, parent);
      if (created) this.#created(path, bytes.length);
      return created;
    });
  }

  read(path: string, offset: number, length: number, parent?: TraceContext): Promise<Uint8Array> {
    return this.#call('read', path, async () => {
      const bytes = await this.#inner.read(path, offset, length, parent);
      this.stats.bytesRead += bytes.length;
      await this.#transfer(bytes.length);
      return bytes;
    });
  }

  readAll(path: string, parent?: TraceContext): Promise<Uint8Array | undefined> {
    return this.#call('readAll', path, async () => {
      const bytes = await this.#inner.readAll(path, parent);
      this.stats.bytesRead += bytes?.length ?? 0;
      await this.#transfer(bytes?.length ?? 0);
      return bytes;
    });
  }

  stat(path: string): Promise<DfsEntry | undefined> {
    return this.#call('stat', path, () => this.#inner.stat(path));
  }

  /** The faults strike at the beginning and at the end of the listing. */
  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    const call = await this.#arrive('list', prefix);
    await this.#strike(call, 'before');
    for await (const entry of this.#inner.list(prefix)) {
      const createdAt = this.#unlisted.get(entry.path);
      if (createdAt === undefined || call.number - createdAt > this.#listLagCalls) yield entry;
    }
    await this.#strike(call, 'after');
  }

  remove(path: string): Promise<void> {
    return this.#call('remove', path, () => this.#inner.remove(path));
  }

  async createWriter(path: string, parent?: TraceContext): Promise<DfsWriter> {
    const writer = await this.#call('createWriter', path, () => this.#inner.createWriter(path, parent));
    let sizeBytes = 0;
    return {
      append: (bytes) =>
        this.#call('append', path, async () => {
          await this.#transfer(bytes.length);
          await writer.append(bytes);
          sizeBytes += bytes.length;
        }),
      close: () =>
        this.#call('closeWriter', path, async () => {
          await writer.close();
          this.#created(path, sizeBytes);
        }),
      abort: () => this.#call('abortWriter', path, () => writer.abort()),
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #call<T>(operation: DfsOperation, path: string, work: () => Promise<T>): Promise<T> {
    const call = await this.#arrive(operation, path);
    await this.#strike(call, 'before');
    const result = await work();
    await this.#strike(call, 'after');
    return result;
  }

  async #arrive(operation: DfsOperation, path: string): Promise<DfsCall> {
    this.stats.requests[operation]++;
    return { number: ++this.#calls, operation, path };
  }

  async #strike(call: DfsCall, timing: FaultTiming): Promise<void> {
    await this.#delay(call, timing);
    if (!isHeld(call.operation)) await this.#wait(this.#distance.latencyMs / 2);
    try {
      for (const fault of this.#faults) {
        if (this.#crashed) break;
        if (fault.timing !== timing || fault.timesLeft <= 0 || !fault.matches(call)) continue;
        fault.timesLeft--;
        await fault.strike(call);
      }
      if (this.#crashed) throw injected(call, timing);
    } catch (error) {
      this.stats.errors++;
      throw error;
    }
  }

  /** Waits for its turn on the link, and for its bytes. */
  async #transfer(sizeBytes: number): Promise<void> {
    const { bytesPerSecond } = this.#distance;
    if (bytesPerSecond === undefined || this.#clock === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    this.#linkFreeAtMs = Math.max(this.#linkFreeAtMs, nowMs) + (sizeBytes * 1000) / bytesPerSecond;
    await this.#wait(this.#linkFreeAtMs - nowMs);
  }

  async #wait(delayMs: number): Promise<void> {
    if (delayMs > 0 && this.#clock !== undefined) await sleep(this.#clock, delayMs);
  }

  #created(path: string, sizeBytes: number): void {
    this.stats.bytesWritten += sizeBytes;
    this.#unlisted.set(path, this.#calls);
  }
}

function isHeld(operation: DfsOperation): boolean {
  return operation === 'createWriter' || operation === 'append';
}

function injected(call: DfsCall, timing: FaultTiming): MillraceError {
  return new MillraceError(
    'dfs-unavailable',
    `injected ${timing} ${call.operation} ${call.path} (call ${call.number})`,
  );
}
