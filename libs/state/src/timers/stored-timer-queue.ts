import { ByteWriter, type MaybePromise } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import type { Entry } from '../keyed/entry.ts';
import type { EntryKeys } from '../keyed/entry-keys.ts';
import type { TimerBounds } from '../keyed/notes.ts';
import type { DueTimer, StateEntry, TimerQueue } from '../keyed/ports.ts';
import type { TableWriter } from '../keyed/table-writer.ts';
import { rangeOfPrefix, writePrefix } from '../keys/key-layout.ts';
import { packedItem } from '../packed.ts';
import type { StateTable } from '../store.ts';
import { GroupHeap } from './group-heap.ts';
import { parseTimer, type QueuedTimer, writeTimerKey } from './stored-timer.ts';
import { TimerGroup } from './timer-group.ts';

/** Timers held in memory for each key group; the rest waits in the table. */
const heldMaxDefault = 512;
/** Groups read at a time. */
const readsMax = 32;

export interface TimerQueueOptions {
  readonly table: StateTable;
  readonly writer: TableWriter;
  readonly keyCodec: Codec<unknown>;
  readonly keys: EntryKeys;
  /** State id of the queue's stored keys. */
  readonly stateId: number;
  /** False for an empty table, whose groups have nothing to read. */
  readonly restored: boolean;
  /** What is known of a restored table's groups; undefined: nothing, and each has to be read. */
  readonly bounds: TimerBounds | undefined;
  /** Which note of an entry remembers the timer last registered. */
  readonly note: 'eventTimerMs' | 'processingTimerMs';
  /** The entry of a fired timer, if it is at hand. */
  find(timer: QueuedTimer): Entry | undefined;
  readonly heldMax?: number | undefined;
}

/**
 * A timer queue over the table. Every timer is written to the table and deleted when it fires, so a snapshot has
 * exactly those that have not fired. Memory holds the earliest of each key group, at most `heldMax`; a heap over the
 * groups gives the overall order, and a group whose held timers are used up is read from the table by a scan.
 */
export class StoredTimerQueue implements TimerQueue {
  readonly #options: TimerQueueOptions;
  readonly #heldMax: number;
  readonly #groups = new Map<number, TimerGroup>();
  readonly #heap = new GroupHeap();
  #reading: Promise<void> | undefined;

  constructor(options: TimerQueueOptions) {
    this.#options = options;
    this.#heldMax = options.heldMax ?? heldMaxDefault;
    if (!options.restored) return;
    const { bounds, table } = options;
    if (bounds !== undefined) {
      for (const [keyGroup, boundMs] of bounds) this.#newGroup(keyGroup, false, boundMs);
      return;
    }
    const { start, end } = table.spec.keyGroups;
    for (let keyGroup = start; keyGroup <= end; keyGroup++) this.#newGroup(keyGroup, false);
  }

  /** Of the groups that have timers, a time before which none is due: what a restore has to know. */
  bounds(): TimerBounds {
    const groups = [...this.#heap].filter((group) => group.headMs < Number.POSITIVE_INFINITY || group.size > 0);
    return new Map(groups.map((group) => [group.keyGroup, group.headMs]));
  }

  register(entry: StateEntry, timeMs: number): boolean {
    const own = entry as Entry;
    if (own[this.#options.note] === timeMs) return false;
    own[this.#options.note] = timeMs;
    const timer: QueuedTimer = {
      timeMs,
      key: own.key,
      namespace: own.namespace,
      suffix: this.#options.keys.suffixOf(own),
    };
    const group = this.#groups.get(own.keyGroup) ?? this.#newGroup(own.keyGroup, true);
    const headMs = this.#heap.top?.headMs ?? Number.POSITIVE_INFINITY;
    if (!group.add(timer, this.#heldMax)) return false;
    this.#heap.update(group);
    this.#write(own.keyGroup, timer, false);
    return timeMs < headMs;
  }

  delete(entry: StateEntry, timeMs: number): void {
    const own = entry as Entry;
    if (own[this.#options.note] === timeMs) own[this.#options.note] = undefined;
    const timer: QueuedTimer = {
      timeMs,
      key: own.key,
      namespace: own.namespace,
      suffix: this.#options.keys.suffixOf(own),
    };
    const group = this.#groups.get(own.keyGroup);
    if (group === undefined) return;
    group.remove(timer);
    this.#heap.update(group);
    this.#write(own.keyGroup, timer, true);
  }

  popDue(timeMs: number, timersMax: number): MaybePromise<readonly DueTimer[]> {
    const due: DueTimer[] = [];
    while (due.length < timersMax) {
      const group = this.#heap.top;
      if (group === undefined) break;
      if (group.needsRead && group.headMs <= timeMs) {
        if (due.length > 0) break;
        return this.#read(timeMs).then(() => this.popDue(timeMs, timersMax));
      }
      if (group.headMs > timeMs || group.size === 0) break;
      const timer = group.take();
      this.#heap.update(group);
      this.#write(group.keyGroup, timer, true);
      const entry = this.#options.find(timer);
      if (entry !== undefined && entry[this.#options.note] === timer.timeMs) entry[this.#options.note] = undefined;
      due.push({ timeMs: timer.timeMs, key: timer.key, namespace: timer.namespace });
    }
    return due;
  }

  nextMs(): MaybePromise<number> {
    const group = this.#heap.top;
    if (group === undefined) return Number.POSITIVE_INFINITY;
    return group.headMs === Number.NEGATIVE_INFINITY && group.needsRead
      ? this.#read(group.headMs).then(() => this.nextMs())
      : group.headMs;
  }

  #newGroup(keyGroup: number, complete: boolean, boundMs?: number): TimerGroup {
    const group = new TimerGroup(keyGroup, complete, boundMs);
    this.#groups.set(keyGroup, group);
    this.#heap.add(group);
    return group;
  }

  #write(keyGroup: number, timer: QueuedTimer, isDelete: boolean): void {
    const { writer, stateId } = this.#options;
    writer.batch.begin();
    writeTimerKey(writer.batch.arena, keyGroup, stateId, timer);
    writer.batch.endKey();
    if (isDelete) writer.batch.delete();
    else writer.batch.put();
    writer.added();
  }

  /** Reads the heads of all groups that have none and may have one that is due. */
  #read(timeMs: number): Promise<void> {
    this.#reading ??= this.#readAll(timeMs).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readAll(timeMs: number): Promise<void> {
    const waiting = [...this.#heap].filter((group) => group.needsRead && group.headMs <= timeMs);
    for (let at = 0; at < waiting.length; at += readsMax) {
      await Promise.all(waiting.slice(at, at + readsMax).map((group) => this.#readGroup(group)));
    }
  }

  async #readGroup(group: TimerGroup): Promise<void> {
    const { table, writer, keyCodec, stateId } = this.#options;
    const prefix = new ByteWriter(4);
    writePrefix(prefix, group.keyGroup, stateId);
    const wanted = Math.ceil(this.#heldMax / 2);
    // What has fired is deleted before the scan, so the scan begins at what has not.
    writer.send();
    group.beginRead();
    const timers: QueuedTimer[] = [];
    let ended = true;
    for await (const page of table.scan({ ...rangeOfPrefix(prefix.copy()), pageEntriesMax: wanted })) {
      for (let i = 0; i < page.keys.count && timers.length < wanted; i++) {
        timers.push(parseTimer(packedItem(page.keys, i), keyCodec));
      }
      if (timers.length < wanted) continue;
      ended = false;
      break;
    }
    group.endRead(timers, ended, this.#heldMax);
    this.#heap.update(group);
  }
}
