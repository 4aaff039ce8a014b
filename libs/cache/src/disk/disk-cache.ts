/**
 * The disk file cache: whole remote files as copies in a directory, one cache for each process, used from all its threads.
 * It decides what is there and keeps the books; users (`DiskFiles`) read and write copies themselves.
 *
 * Limits hold at every instant: a byte is written only within space that was granted before, and what makes room for it was
 * removed before that (an open file gives its bytes back at once). Copies verify themselves at each read, so a
 * crash, a damaged disk or a second process in the directory costs requests, never wrong bytes.
 */
import { type Clock, MillraceError, type Random, Semaphore, type Timer } from '@millrace/kernel';
import type { Logger } from '@millrace/telemetry';
import type { CachePolicy } from '../policies/policy.ts';
import { type CacheDisk, isFull } from './cache-disk.ts';
import { type CacheNotice, type FileReads, leaseMs, type SpaceRequest } from './cache-link.ts';
import { type CachedFile, contentBytesOf, copyName } from './cached-file.ts';
import { copyBytes } from './copy-format.ts';
import { CopyLoader, type RemoteRead } from './copy-loader.ts';
import { DiskStats } from './disk-stats.ts';

export interface DiskCacheOptions {
  readonly disk: CacheDisk;
  /** For all copies together, being written or not. */
  readonly bytesMax: number;
  /** Free bytes that the cache leaves on the disk. */
  readonly reserveBytes: number;
  readonly policy: CachePolicy;
  /** Reads a range of a remote file, to load it. */
  readonly fetch: RemoteRead;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** False when another process has taken the directory over: then nothing is written or removed any more. */
  readonly stillOwned?: () => Promise<boolean>;
}

/** A copy that is there. */
interface Copy {
  readonly bytes: number;
  touchedMs: number;
}

/** Space that was granted for a copy that is being written. */
interface Ticket {
  bytes: number;
  untilMs: number;
}

const tickMs = 1000;
/** How long nothing is written after the disk was full. */
const pauseMs = 30_000;
/** How often the use of a copy is noted on the disk. */
const touchEveryMs = 60_000;
const loadsMax = 2;
/** Files outside of the cache whose place is known. */
const knownMax = 8192;

export class DiskCache {
  readonly stats = new DiskStats();
  readonly #options: DiskCacheOptions;
  readonly #loader: CopyLoader;
  readonly #copies = new Map<string, Copy>();
  readonly #tickets = new Map<string, Ticket>();
  /** Where files of which reads were reported lie. */
  readonly #files = new Map<string, CachedFile>();
  readonly #serial = new Semaphore(1);
  readonly #loads = new Map<string, Promise<void>>();
  #copiesBytes = 0;
  #ticketsBytes = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(options: DiskCacheOptions) {
    this.#options = options;
    this.#loader = new CopyLoader(options);
  }

  /** Takes over what an earlier life left in the directory. Throws what the system says. */
  static async open(options: DiskCacheOptions): Promise<DiskCache> {
    const cache = new DiskCache(options);
    await cache.#takeOver();
    cache.#schedule();
    return cache;
  }

  /** Bytes that copies take, those being written included; never above `bytesMax`. */
  get bytes(): number {
    return this.#copiesBytes + this.#ticketsBytes;
  }

  get files(): number {
    return this.#copies.size;
  }

  /** See {@link CacheLink}. */
  request({ ticket, bytes }: SpaceRequest): Promise<boolean> {
    return this.#serial.run(async () => {
      if (this.#closed || this.#paused || !(await this.#makeRoom(bytes))) {
        this.stats.refused++;
        return false;
      }
      this.#grant(ticket, bytes);
      return true;
    });
  }

  /** See {@link CacheLink}. */
  notify(notice: CacheNotice): void {
    switch (notice.kind) {
      case 'reads':
        this.#count(notice.reads, notice.areScans);
        return this.#load();
      case 'published':
        return this.#published(notice.ticket, notice.file);
      case 'given-up':
        this.#release(notice.ticket);
        if (notice.why !== 'aborted') this.stats.failures.write++;
        if (notice.why === 'full') this.#pause();
        return;
      case 'damaged':
        return this.#damaged(notice.name);
      case 'forgotten':
        return this.#drop(notice.names);
    }
  }

  /** Ends loads under way; copies stay for the next life. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#loader.close();
    await Promise.all(this.#loads.values());
    await this.#working;
    await this.#serial.run(async () => undefined);
  }

  get #paused(): boolean {
    return this.#options.clock.monotonicMs() < this.#pausedUntilMs;
  }

  async #takeOver(): Promise<void> {
    const { disk, policy, clock, bytesMax } = this.#options;
    await disk.clearTemporary();
    const entries = [...(await disk.list())].sort((a, b) => a.usedMs - b.usedMs);
    for (const { name, bytes, usedMs } of entries) {
      const contentBytes = contentBytesOf(name);
      this.#copies.set(name, { bytes, touchedMs: usedMs });
      this.#copiesBytes += bytes;
      if (contentBytes === undefined || bytes !== copyBytes(contentBytes)) await this.#remove(name);
      else policy.added({ id: name, bytes }, 'found', clock.monotonicMs());
    }
    // The limit may be lower than it was.
    while (this.#copiesBytes > bytesMax && (await this.#evict()));
    await this.#keepReserve();
  }

  #grant(ticket: string, bytes: number): void {
    const held = this.#tickets.get(ticket) ?? { bytes: 0, untilMs: 0 };
    held.bytes += bytes;
    held.untilMs = this.#options.clock.monotonicMs() + leaseMs;
    this.#tickets.set(ticket, held);
    this.#ticketsBytes += bytes;
  }

  #release(ticket: string): void {
    const held = this.#tickets.get(ticket);
    if (held === undefined) return;
    this.#tickets.delete(ticket);
    this.#ticketsBytes -= held.bytes;
  }

  #published(ticket: string, file: CachedFile): void {
    const name = copyName(file) as string;
    if (!this.#tickets.has(ticket)) return this.#drop([name]); // too late: the space is another's
    this.#release(ticket);
    this.stats.written++;
    this.#added(name, file, 'written');
  }

  #added(name: string, file: CachedFile, how: 'written' | 'loaded'): void {
    const bytes = copyBytes(file.sizeBytes);
    if (this.#copies.has(name)) return;
    this.#copies.set(name, { bytes, touchedMs: this.#options.clock.nowMs() });
    this.#copiesBytes += bytes;
    this.#options.policy.added({ id: name, bytes }, how, this.#options.clock.monotonicMs());
  }

  #count(reads: readonly FileReads[], areScans: boolean): void {
    const { policy, clock } = this.#options;
    for (const { file, hits, hitBytes, misses, missBytes } of reads) {
      const name = copyName(file);
      if (name === undefined) continue;
      this.stats.hits += hits;
      this.stats.hitBytes += hitBytes;
      this.stats.misses += misses;
      this.stats.missBytes += missBytes;
      if (areScans) continue;
      const copy = this.#copies.get(name);
      policy.accessed({ id: name, bytes: copyBytes(file.sizeBytes) }, hits + misses, clock.monotonicMs());
      if (copy === undefined) this.#know(name, file);
      else if (hits === 0) this.#check(name);
      else if (clock.nowMs() - copy.touchedMs > touchEveryMs) this.#touch(name, copy);
    }
  }

  /** Remembers where a file lies, so that it can be loaded. */
  #know(name: string, file: CachedFile): void {
    this.#files.delete(name);
    this.#files.set(name, file);
    if (this.#files.size <= knownMax) return;
    for (const oldest of this.#files.keys()) {
      this.#files.delete(oldest);
      return;
    }
  }

  /** A copy that reads do not find may have been removed by somebody else. */
  #check(name: string): void {
    this.#later(async () => {
      const reader = await this.#options.disk.open(name);
      reader?.close();
      if (reader !== undefined || !this.#copies.has(name)) return;
      this.stats.failures.lost++;
      this.#forget(name);
    });
  }

  #damaged(name: string): void {
    this.#later(async () => {
      // One that was being evicted looks damaged, too.
      if (!this.#copies.has(name)) return;
      this.stats.failures.damaged++;
      await this.#remove(name);
    });
  }

  #touch(name: string, copy: Copy): void {
    const nowMs = this.#options.clock.nowMs();
    copy.touchedMs = nowMs;
    this.#later(() => this.#options.disk.touch(name, nowMs));
  }

  #drop(names: readonly string[]): void {
    this.#later(async () => {
      for (const name of names) {
        this.#options.policy.removed(name);
        // Also one that the books do not have: its ticket may have been void.
        await this.#remove(name);
      }
    });
  }

  /** Starts loads of what the policy wants, as many as may run. */
  #load(): void {
    if (this.#closed || this.#paused || this.#loads.size >= loadsMax) return;
    for (const { id } of this.#options.policy.wanted(this.#options.clock.monotonicMs())) {
      const file = this.#files.get(id);
      if (file === undefined || this.#copies.has(id) || this.#loads.has(id) || this.#loader.failedLately(id)) continue;
      const load = this.#loadOne(id, file).finally(() => this.#loads.delete(id));
      this.#loads.set(id, load);
      if (this.#loads.size >= loadsMax) return;
    }
  }

  async #loadOne(name: string, file: CachedFile): Promise<void> {
    const ticket = this.#options.random.hex(8);
    const bytes = copyBytes(file.sizeBytes);
    const granted = await this.#serial.run(async () => {
      if (this.#closed || !(await this.#makeRoom(bytes, { id: name, bytes }))) return false;
      this.#grant(ticket, bytes);
      return true;
    });
    if (!granted) return;
    const outcome = await this.#loader.load(ticket, name, file, () => this.#extend(ticket));
    this.#release(ticket);
    if (outcome.kind === 'loaded') {
      this.stats.loads++;
      this.stats.loadedBytes += file.sizeBytes;
      this.#files.delete(name);
      this.#added(name, file, 'loaded');
    } else if (outcome.kind === 'failed') {
      this.stats.failures.load++;
      if (isFull(outcome.error)) this.#pause();
      this.#options.log.warn('a file was not loaded into the disk cache', {
        file: file.path,
        error: MillraceError.from(outcome.error).message,
      });
    }
  }

  #extend(ticket: string): boolean {
    const held = this.#tickets.get(ticket);
    if (held === undefined) return false;
    held.untilMs = this.#options.clock.monotonicMs() + leaseMs;
    return true;
  }

  /** Evicts until `bytes` more fit under both limits; false when that cannot be. Serial. */
  async #makeRoom(bytes: number, forLoad?: { readonly id: string; readonly bytes: number }): Promise<boolean> {
    const { bytesMax, reserveBytes } = this.#options;
    if (bytes > bytesMax) return false;
    for (;;) {
      if (this.bytes + bytes <= bytesMax && (await this.#freeBytes()) - bytes >= reserveBytes) return true;
      if (!(await this.#evict(forLoad))) return false;
    }
  }

  /** What is free, less what was granted: as if nothing of it were written yet. */
  async #freeBytes(): Promise<number> {
    // Before the disk is asked: a ticket that ends meanwhile may have been written after the answer.
    const granted = this.#ticketsBytes;
    return (await this.#options.disk.freeBytes()) - granted;
  }

  /** Lets one copy go; false when there is none, or none that should go for what is to be loaded. */
  async #evict(forLoad?: { readonly id: string; readonly bytes: number }): Promise<boolean> {
    const { policy, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const name = forLoad === undefined ? policy.evict(nowMs) : policy.evict(nowMs, forLoad, 'loaded');
    if (name === undefined) return false;
    if (await this.#remove(name)) this.stats.evictions++;
    return true;
  }

  /** Serial, or before anybody uses the cache. */
  async #remove(name: string): Promise<boolean> {
    try {
      await this.#options.disk.remove(name);
      this.#forget(name);
      return true;
    } catch (error) {
      // Its bytes stay in the books, for they stay on the disk.
      this.stats.failures.remove++;
      this.#options.log.warn('a file of the disk cache cannot be removed', {
        file: name,
        error: MillraceError.from(error).message,
      });
      return false;
    }
  }

  #forget(name: string): void {
    const copy = this.#copies.get(name);
    this.#options.policy.removed(name);
    if (copy === undefined) return;
    this.#copies.delete(name);
    this.#copiesBytes -= copy.bytes;
  }

  #pause(): void {
    this.stats.failures.full++;
    this.#pausedUntilMs = this.#options.clock.monotonicMs() + pauseMs;
    this.#options.log.warn('the disk of the disk cache is full: nothing is written to it for a while', { pauseMs });
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer = this.#options.clock.schedule(tickMs, () => {
      this.#later(() => this.#tick());
      this.#load();
      this.#schedule();
    });
  }

  async #tick(): Promise<void> {
    const { stillOwned, log } = this.#options;
    if (this.#closed) return;
    if (stillOwned !== undefined && !(await stillOwned())) {
      log.warn('another process has taken over the directory of the disk cache: this one writes no more to it');
      this.#timer?.cancel();
      this.#closed = true;
      this.#loader.close();
      return;
    }
    await this.#endLeases();
    await this.#keepReserve();
  }

  /** Others write to the disk, too. */
  async #keepReserve(): Promise<void> {
    while ((await this.#options.disk.freeBytes()) < this.#options.reserveBytes && (await this.#evict()));
  }

  async #endLeases(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [ticket, { untilMs }] of this.#tickets) {
      if (untilMs > nowMs) continue;
      await this.#options.disk.removeTemporary(ticket);
      this.#release(ticket);
      this.stats.failures.write++;
    }
  }

  /** In turn with all else that changes the disk; its failure is counted. */
  #later(work: () => Promise<void>): void {
    const done = this.#serial.run(work).catch((error: unknown) => {
      this.stats.failures.disk++;
      this.#options.log.warn('the disk of the disk cache failed', { error: MillraceError.from(error).message });
    });
    this.#working = Promise.all([this.#working, done]).then(() => undefined);
  }
}
