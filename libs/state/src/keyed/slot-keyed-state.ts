import type { ExistenceScope } from '@millrace/cache';
import { assert, ByteWriter, containsKeyGroup, keyGroupOf, type MaybePromise, MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Codec } from '../codec.ts';
import type { StateShape } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import { keyCodec as canonicalKeys } from '../keys/key-codec.ts';
import { eventTimerStateId, processingTimerStateId } from '../keys/key-layout.ts';
import type { KeyValue } from '../keys/key-value.ts';
import { type PrimitiveKey, primitiveKey } from '../keys/primitive-key.ts';
import type { SnapshotHandle, StateTable } from '../store.ts';
import { StoredTimerQueue } from '../timers/stored-timer-queue.ts';
import type { Catalog } from './catalog.ts';
import { definitionsOf, mergeCatalog } from './catalog.ts';
import { loadCatalog, saveCatalog } from './catalog-store.ts';
import { Entry, type EntryOwner, type EntrySpace, type EntryTemplate, entryTemplate } from './entry.ts';
import { EntryKeys } from './entry-keys.ts';
import { type FacadeClass, facadeClass, type RunningState, runState } from './facade.ts';
import { notesOf, type RestoredNotes, timerNotes } from './notes.ts';
import type { AccessScope, KeyedState, KeyedStateOptions, StateEntry } from './ports.ts';
import { Row, type RowCell, savingFailed } from './row.ts';
import type { CellContext } from './state-definition.ts';
import { TableCache } from './table-cache.ts';
import { microtaskBatcher, TableReader } from './table-reader.ts';
import { TableWriter } from './table-writer.ts';
import { ValueCell } from './value-cell.ts';
import type { WorkingSet } from './working-set.ts';

const changesMaxDefault = 8192;

/** Rows on their way at which no record is admitted. */
const fetchesMax = 8192;

/**
 * Checks the table's catalog, which the handles tell or the table, and gives the runtime of its states. Throws `state-incompatible`, naming state
 * and field, before anything is written.
 */
export async function openKeyedState<S extends StateShape>(options: KeyedStateOptions<S>): Promise<KeyedState<S>> {
  const keyCodec = (options.keyCodec ?? canonicalKeys) as Codec<unknown>;
  const notes = options.restored ? notesOf(options.handles ?? [], options.table.spec.keyGroups) : undefined;
  const stored = notes?.catalog ?? (options.restored ? await loadCatalog(options.table) : undefined);
  const catalog = mergeCatalog(stored, options.shape, keyCodec.format);
  const state = new SlotKeyedState<S>(options, { catalog, keyCodec, notes });
  if (JSON.stringify(stored) !== JSON.stringify(catalog)) state.saveCatalog();
  if (options.restored) await Promise.all([state.eventTimers.nextMs(), state.processingTimers.nextMs()]);
  return state;
}

/** What is known of the table before its keyed state is there. */
interface Known {
  readonly catalog: Catalog;
  readonly keyCodec: Codec<unknown>;
  readonly notes: RestoredNotes | undefined;
}

/** The keyed state of one subtask, over its table and the slot's working set. */
class SlotKeyedState<S extends StateShape> implements KeyedState<S>, EntryOwner {
  readonly eventTimers: StoredTimerQueue;
  readonly processingTimers: StoredTimerQueue;
  readonly #catalog: Catalog;
  readonly #table: StateTable;
  readonly #workingSet: WorkingSet;
  readonly #cache: TableCache;
  readonly #writer: TableWriter;
  readonly #keyCodec: Codec<unknown>;
  readonly #states: RunningState[] = [];
  readonly #row: Row | undefined;
  readonly #facade: FacadeClass<S>;
  readonly #changesMax: number;
  /** Entries without a namespace, and those of each namespace. */
  readonly #plain: EntrySpace = { owner: this, namespace: undefined, entries: new Map() };
  readonly #spaces = new Map<PrimitiveKey, EntrySpace>();
  readonly #template: EntryTemplate;
  readonly #scratch = new ByteWriter(256);
  /** Changes of all entries that the table does not have. */
  #changes = 0;
  #closed = false;
  #failure: MillraceError | undefined;
  readonly #onFailure: ((error: MillraceError) => void) | undefined;

  constructor(options: KeyedStateOptions<S>, { catalog, keyCodec, notes }: Known) {
    const { table, workingSet, clock, restored } = options;
    this.#catalog = catalog;
    this.#table = table;
    this.#workingSet = workingSet;
    this.#keyCodec = keyCodec;
    this.#onFailure = options.onFailure;
    this.#changesMax = options.changesMax ?? changesMaxDefault;
    this.#cache = new TableCache(workingSet.cache, existenceScopeOf(options, catalog));
    const cache = this.#cache;
    this.#writer = new TableWriter(table, cache, (error) => this.#fail(error));
    const keys = new EntryKeys(keyCodec);
    const context: CellContext = {
      keys,
      reader: new TableReader(table, options.batcher ?? microtaskBatcher, cache),
      writer: this.#writer,
      workingSet,
      clock,
      scratch: new ByteWriter(512),
      markDirty: (entry, bit, changes) => this.#markDirty(entry, bit, changes),
      failed: (error) => this.#fail(error),
    };
    const byName = new Map<string, RunningState>();
    for (const definition of definitionsOf(catalog, options.shape)) {
      const state = runState(definition, context, table);
      this.#states.push(state);
      byName.set(definition.name, state);
    }
    this.#row = rowOf(this.#states, catalog, context);
    this.#facade = facadeClass<S>(byName);
    const expires = Object.values(options.shape).some((descriptor) => descriptor.ttl !== undefined);
    this.#template = entryTemplate(this.#states.length, expires);
    const find = (timer: { key: unknown; namespace: KeyValue | undefined }): Entry | undefined =>
      this.#space(timer.namespace)?.entries.get(primitiveKey(timer.key));
    const common = { table, writer: this.#writer, keyCodec, keys, restored, find, heldMax: options.timersHeldMax };
    this.eventTimers = new StoredTimerQueue({
      ...common,
      stateId: eventTimerStateId,
      note: 'eventTimerMs',
      bounds: notes?.eventTimers,
    });
    this.processingTimers = new StoredTimerQueue({
      ...common,
      bounds: notes?.processingTimers,
      stateId: processingTimerStateId,
      note: 'processingTimerMs',
    });
  }

  saveCatalog(): void {
    saveCatalog(this.#catalog, this.#table, this.#writer);
  }

  room(): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#workingSet.bytes > this.#workingSet.bytesMax) this.#workingSet.reclaim();
    if (this.#row !== undefined && this.#row.fetching >= fetchesMax) return this.#row.fetched();
    return this.#writer.pending;
  }

  settled(): MaybePromise<void> {
    if (this.#row === undefined) return undefined;
    this.#writeBehind();
    return this.#row.fetching === 0 ? undefined : this.#row.fetched().then(() => this.settled());
  }

  enter(key: unknown, namespace?: KeyValue): StateEntry {
    if (this.#failure !== undefined) throw this.#failure;
    const space = namespace === undefined ? this.#plain : this.#spaceOf(namespace);
    const primitive = primitiveKey(key);
    let entry = space.entries.get(primitive);
    if (entry === undefined) entry = this.#create(key, primitive, space);
    else entry.referenced = true;
    entry.pins++;
    return entry;
  }

  leave(entry: StateEntry): void {
    const own = entry as Entry;
    assert(own.pins > 0, 'leave without enter');
    own.pins--;
    // A handler may have caught it: its record fails all the same.
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#workingSet.bytes > this.#workingSet.bytesMax) this.#workingSet.reclaim();
  }

  facade(entry: StateEntry, scope: AccessScope): StateFacade<S> {
    return new this.#facade(entry as Entry, scope);
  }

  flush(): MaybePromise<void> {
    this.#writeBehind();
    return this.#writer.pending;
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<SnapshotHandle> {
    const writing = this.flush();
    assert(this.#row === undefined || this.#row.fetching === 0, 'a snapshot of a state that is not settled');
    // As of the snapshot: what follows it is not in it.
    const keyed = {
      catalog: this.#catalog,
      eventTimers: timerNotes(this.eventTimers.bounds()),
      processingTimers: timerNotes(this.processingTimers.bounds()),
    };
    const [handle] = await Promise.all([this.#table.snapshot(checkpoint, parent), writing]);
    return { ...handle, keyed };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const space of [this.#plain, ...this.#spaces.values()]) {
      for (const entry of space.entries.values()) this.#workingSet.remove(entry);
      space.entries.clear();
    }
    this.#cache.close();
    await this.#table.close();
  }

  evict(entry: Entry): boolean {
    if (this.#failure !== undefined) throw this.#failure;
    if (entry.dirty !== 0) this.#save(entry);
    // Its row is on its way: without the entry, the next record of the key would read what is older than its changes.
    if (entry.dirty !== 0) return false;
    const { entries, namespace } = entry.space;
    entries.delete(entry.primitive);
    if (entries.size === 0 && namespace !== undefined) this.#spaces.delete(primitiveKey(namespace));
    return true;
  }

  /** Reads of what was evicted go to the table from now on. */
  evicted(): void {
    this.#send();
  }

  #space(namespace: KeyValue | undefined): EntrySpace | undefined {
    return namespace === undefined ? this.#plain : this.#spaces.get(primitiveKey(namespace));
  }

  #spaceOf(namespace: KeyValue): EntrySpace {
    const primitive = primitiveKey(namespace);
    let space = this.#spaces.get(primitive);
    if (space === undefined) {
      space = { owner: this, namespace, entries: new Map() };
      this.#spaces.set(primitive, space);
    }
    return space;
  }

  #create(key: unknown, primitive: PrimitiveKey, space: EntrySpace): Entry {
    assert(!this.#closed, 'the keyed state is closed');
    const scratch = this.#scratch;
    scratch.reset();
    this.#keyCodec.encode(key, scratch);
    const { maxParallelism, keyGroups } = this.#table.spec;
    const keyGroup = keyGroupOf(scratch.bytes, 0, scratch.position, maxParallelism);
    assert(
      containsKeyGroup(keyGroups, keyGroup),
      `key group ${keyGroup} reached the subtask of ${keyGroups.start} to ${keyGroups.end}`,
    );
    const entry = new Entry(key, primitive, keyGroup, space, this.#template);
    space.entries.set(primitive, entry);
    this.#workingSet.add(entry);
    return entry;
  }

  #markDirty(entry: Entry, bit: number, changes: number): void {
    entry.dirty |= bit;
    entry.changes += changes;
    this.#changes += changes;
    if (this.#changes >= this.#changesMax) this.#writeBehind();
  }

  /** Writes every change to the table, where reads see it from then on. All or, when one cannot be written, no more. */
  #writeBehind(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#changes > 0) {
      this.#saveAll(this.#plain);
      for (const space of this.#spaces.values()) this.#saveAll(space);
    }
    this.#send();
  }

  #saveAll(space: EntrySpace): void {
    for (const entry of space.entries.values()) if (entry.dirty !== 0) this.#save(entry);
  }

  #send(): void {
    try {
      this.#writer.send();
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #fail(error: unknown): MillraceError {
    const failure = MillraceError.from(error);
    if (this.#failure === undefined) {
      this.#failure = failure;
      this.#onFailure?.(failure);
    }
    return failure;
  }

  #save(entry: Entry): void {
    let bits = entry.dirty;
    entry.dirty = 0;
    this.#changes -= entry.changes;
    entry.changes = 0;
    try {
      const row = this.#row;
      if (row !== undefined && (bits & row.mask) !== 0) {
        if (!row.save(entry)) entry.dirty = bits & row.mask;
        bits &= ~row.mask;
      }
      for (let i = 0; bits !== 0; i++, bits >>>= 1) {
        if ((bits & 1) !== 0) this.#saveState(entry, this.#states[i] as RunningState);
      }
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #saveState(entry: Entry, { cell, definition }: RunningState): void {
    try {
      cell.save(entry);
    } catch (error) {
      throw savingFailed(entry, definition.name, error);
    }
  }
}

/** What exists in the table, from now on or after its longest time to live; none without a filter. */
function existenceScopeOf(
  { table, workingSet, restored }: KeyedStateOptions<StateShape>,
  { ttlMaxMs = 0 }: Catalog,
): ExistenceScope | undefined {
  const { existence } = workingSet;
  if (!existence.isOn) return undefined;
  return existence.openScope({ keyGroups: table.spec.keyGroups, ttlMs: ttlMaxMs, isEmpty: !restored });
}

/** The row of the states that lie in it; none without such states. */
function rowOf(states: readonly RunningState[], catalog: Catalog, context: CellContext): Row | undefined {
  const cells: RowCell[] = [];
  for (const { definition, cell } of states) {
    const { id, name, index, inRow } = definition;
    if (inRow && cell instanceof ValueCell) cells.push({ id, name, index, cell });
  }
  if (cells.length === 0) return undefined;
  const stored = Object.values(catalog.states).filter((state) => state.inRow === true).length;
  const row = new Row(cells, stored > cells.length, context);
  for (const { cell } of cells) cell.row = row;
  return row;
}
