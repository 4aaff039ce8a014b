import { ByteReader, ByteWriter, compareBytes, keyGroupOf, MillraceError } from '@millrace/kernel';
import { loadCatalog } from '../keyed/catalog-store.ts';
import {
  type ByteRange,
  catalogStateId,
  eventTimerStateId,
  parseStoredKey,
  processingTimerStateId,
  rangeOfPrefix,
  rowStateId,
  type StoredKey,
  writePrefix,
  writeSized,
} from '../keys/key-layout.ts';
import type { KeyValue } from '../keys/key-value.ts';
import { packedItem } from '../packed.ts';
import type { StateTable } from '../store.ts';
import { parseTimer } from '../timers/stored-timer.ts';
import { type Decoded, FormatReader, type StoredState, statesOf } from './stored-states.ts';

/** One stored value, with what its key says. */
export interface InspectedEntry {
  readonly state: string;
  readonly kind: StoredState['kind'] | 'timer';
  readonly keyGroup: number;
  readonly key: Decoded;
  /** The window, where the operator has one. */
  readonly namespace: KeyValue | undefined;
  /** Of maps. */
  readonly mapKey: Decoded | undefined;
  /** Of timers: when it fires. */
  readonly value: Decoded;
  /** Epoch milliseconds; 0: never. */
  readonly expiresAtMs: number;
}

/** Names under which timers are found beside the states. */
export const timerStates = { 'event-timers': eventTimerStateId, 'processing-timers': processingTimerStateId } as const;

/** What is wanted of a table: everything, some states, one key. */
export interface EntrySelection {
  /** Names of states and of {@link timerStates}; default: all states. */
  readonly states?: readonly string[] | undefined;
}

/** Reads a restored table without the job that wrote it, by the catalog that lies in it. Changes nothing. */
export class TableInspector {
  readonly states: readonly StoredState[];
  /** Format of the keys. */
  readonly keyFormat: string;
  readonly #table: StateTable;
  readonly #nowMs: number;
  readonly #formats = new FormatReader();
  readonly #byId: ReadonlyMap<number, StoredState>;

  private constructor(table: StateTable, keyFormat: string, states: readonly StoredState[], nowMs: number) {
    this.#table = table;
    this.keyFormat = keyFormat;
    this.states = states;
    this.#nowMs = nowMs;
    this.#byId = new Map(states.map((state) => [state.id, state]));
  }

  /** Undefined when the table has no catalog, so no state. `nowMs` decides what has expired. */
  static async open(table: StateTable, nowMs: number): Promise<TableInspector | undefined> {
    const catalog = await loadCatalog(table);
    return catalog && new TableInspector(table, catalog.keyFormat, statesOf(catalog), nowMs);
  }

  /** The bytes that the job has for `key`. Rejects keys that its codec cannot write. */
  keyBytes(key: unknown): Uint8Array {
    const codec = this.#formats.codec(this.keyFormat);
    if (codec === undefined) {
      throw new MillraceError('bad-argument', `keys have the format ${this.keyFormat}, which only the job can write`);
    }
    const writer = new ByteWriter(64);
    codec.encode(key, writer);
    return writer.copy();
  }

  keyGroupOf(keyBytes: Uint8Array): number {
    return keyGroupOf(keyBytes, 0, keyBytes.length, this.#table.spec.maxParallelism);
  }

  /** What is stored for a key, in all its windows. */
  async *entriesOf(keyBytes: Uint8Array, selection: EntrySelection = {}): AsyncGenerator<InspectedEntry> {
    const keyGroup = this.keyGroupOf(keyBytes);
    for (const stateId of this.#stateIds(selection)) {
      const writer = new ByteWriter(64);
      writePrefix(writer, keyGroup, stateId);
      if (!isTimer(stateId)) writeSized(writer, keyBytes);
      for await (const [key, value] of this.#scan(rangeOfPrefix(writer.copy()))) {
        if (isTimer(stateId) && compareBytes(keyOfTimer(key), keyBytes) !== 0) continue;
        yield* this.#entries(key, value, selection);
      }
    }
  }

  /** Everything, by key group and state. */
  async *entries(selection: EntrySelection = {}): AsyncGenerator<InspectedEntry> {
    const { start, end } = this.#table.spec.keyGroups;
    const stateIds = this.#stateIds(selection);
    for (let keyGroup = start; keyGroup <= end; keyGroup++) {
      for (const stateId of stateIds) {
        const writer = new ByteWriter(4);
        writePrefix(writer, keyGroup, stateId);
        const range = rangeOfPrefix(writer.copy());
        for await (const [key, value] of this.#scan(range)) yield* this.#entries(key, value, selection);
      }
    }
  }

  /** Ids under which the selected states are stored, ascending. */
  #stateIds({ states }: EntrySelection): readonly number[] {
    const names = states ?? this.states.map((state) => state.name);
    const ids = names.map((name) => {
      const timers = (timerStates as Readonly<Record<string, number>>)[name];
      const state = this.states.find((one) => one.name === name);
      if (state !== undefined) return state.inRow ? rowStateId : state.id;
      if (timers !== undefined) return timers;
      const known = [...this.states.map((one) => one.name), ...Object.keys(timerStates)].join(', ');
      throw new MillraceError('bad-argument', `there is no state ${name}; there are ${known}`);
    });
    return [...new Set(ids)].sort((a, b) => a - b);
  }

  async *#scan(range: ByteRange): AsyncGenerator<readonly [key: Uint8Array, value: Uint8Array]> {
    for await (const { keys, values } of this.#table.scan({ ...range, pageEntriesMax: 256 })) {
      for (let i = 0; i < keys.count; i++) yield [packedItem(keys, i), packedItem(values, i)];
    }
  }

  /** One stored entry may hold values of several states. */
  *#entries(key: Uint8Array, value: Uint8Array, { states }: EntrySelection): Generator<InspectedEntry> {
    const stateId = new ByteReader(key, 2).u16be();
    if (stateId === catalogStateId) return;
    if (isTimer(stateId)) return yield this.#timer(key, stateId);
    const stored = parseStoredKey(new ByteReader(key));
    const wanted = (name: string): boolean => states === undefined || states.includes(name);
    for (const [state, bytes] of stateId === rowStateId ? this.#cells(value) : this.#single(stateId, value)) {
      if (!wanted(state.name)) continue;
      const { decoded, expiresAtMs } = this.#formats.value(state, bytes);
      if (expiresAtMs !== 0 && expiresAtMs <= this.#nowMs) continue;
      yield { ...this.#keyParts(stored, state), state: state.name, kind: state.kind, value: decoded, expiresAtMs };
    }
  }

  #single(stateId: number, value: Uint8Array): (readonly [StoredState, Uint8Array])[] {
    const state = this.#byId.get(stateId);
    return state === undefined ? [] : [[state, value]];
  }

  /** The values of a row: id · length · stored value, one after the other. */
  *#cells(row: Uint8Array): Generator<readonly [StoredState, Uint8Array]> {
    const reader = new ByteReader(row);
    while (reader.remaining > 0) {
      const state = this.#byId.get(reader.u16be());
      const bytes = reader.raw(reader.u32le());
      if (state !== undefined) yield [state, bytes];
    }
  }

  #keyParts({ keyGroup, key, namespace, mapKey }: StoredKey, state: StoredState) {
    return {
      keyGroup,
      key: this.#formats.decode(this.keyFormat, new ByteReader(key)),
      namespace: namespace.length === 0 ? undefined : this.#namespace(namespace),
      mapKey: state.keyFormat === undefined ? undefined : this.#formats.decode(state.keyFormat, new ByteReader(mapKey)),
    };
  }

  #namespace(bytes: Uint8Array): KeyValue {
    return this.#formats.codec('key')?.decode(new ByteReader(bytes)) as KeyValue;
  }

  #timer(storedKey: Uint8Array, stateId: number): InspectedEntry {
    const codec = this.#formats.codec(this.keyFormat);
    const keyBytes = keyOfTimer(storedKey);
    const timer = parseTimer(storedKey, codec ?? { format: '', encode: () => undefined, decode: () => undefined });
    return {
      state: stateId === eventTimerStateId ? 'event-timers' : 'processing-timers',
      kind: 'timer',
      keyGroup: new ByteReader(storedKey).u16be(),
      key: this.#formats.decode(this.keyFormat, new ByteReader(keyBytes)),
      namespace: timer.namespace,
      mapKey: undefined,
      value: { value: timer.timeMs },
      expiresAtMs: 0,
    };
  }
}

function isTimer(stateId: number): boolean {
  return stateId === eventTimerStateId || stateId === processingTimerStateId;
}

/** Timers have their time, 8 bytes, in front of the key. */
function keyOfTimer(storedKey: Uint8Array): Uint8Array {
  const withoutTime = new Uint8Array(storedKey.length - 8);
  withoutTime.set(storedKey.subarray(0, 4));
  withoutTime.set(storedKey.subarray(12), 4);
  return parseStoredKey(new ByteReader(withoutTime)).key;
}
