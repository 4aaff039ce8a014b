import { MillraceError } from '@millrace/kernel';
import type { Codec, Decode } from '../codec.ts';
import { array } from '../codecs/composed.ts';
import { decoderFor } from '../codecs/decoder-for.ts';
import { checkCompatible } from '../codecs/format.ts';
import type { StateDescriptor, StateShape } from '../handles/descriptors.ts';
import { stateIdsReserved } from '../keys/key-layout.ts';
import type { StateDefinition } from './state-definition.ts';
import { StoredValue, versionsMax } from './stored-value.ts';

/** What a table remembers of one state. */
interface CatalogEntry {
  readonly id: number;
  readonly kind: StateDescriptor['kind'];
  /** Its values lie in the row of their key, with those of the other such states. Chosen when the state first appears. */
  readonly inRow?: true;
  /** Format of the map keys, for maps. */
  readonly keyFormat?: string;
  /** Every format that values were ever written in; a stored value names its place here. The last one is current. */
  readonly formats: readonly string[];
}

/**
 * The states of a table by name, kept in the table itself: it says which id a name has in stored keys, and in which
 * formats values may lie there. States that a job no longer declares stay, with their data.
 */
export interface Catalog {
  readonly version: 1;
  readonly keyFormat: string;
  /** The longest time to live that any of its values may have, in milliseconds; 0, or without it: for ever. */
  readonly ttlMaxMs?: number;
  readonly states: Readonly<Record<string, CatalogEntry>>;
}

/** An entry holds one bit for each state. */
const statesMax = 31;

function codecOf(descriptor: StateDescriptor): Codec<unknown> {
  return descriptor.kind === 'list' ? array(descriptor.codec) : descriptor.codec;
}

function refuse(name: string, reason: string, cause?: unknown): MillraceError {
  const field = cause instanceof MillraceError ? cause.details['field'] : undefined;
  return new MillraceError('state-incompatible', `state ${name}: ${reason}`, {
    details: { state: name, ...(field === undefined ? {} : { field }) },
    ...(cause === undefined ? {} : { cause }),
  });
}

function merged(
  name: string,
  descriptor: StateDescriptor,
  stored: CatalogEntry | undefined,
  nextId: number,
  inRow: boolean,
): CatalogEntry {
  const format = codecOf(descriptor).format;
  const keyFormat = descriptor.kind === 'map' ? { keyFormat: descriptor.keyCodec.format } : {};
  if (stored === undefined) {
    const place = inRow ? { inRow: true as const } : {};
    return { id: nextId, kind: descriptor.kind, ...place, ...keyFormat, formats: [format] };
  }
  if (stored.kind !== descriptor.kind) throw refuse(name, `was a ${stored.kind} state and is now ${descriptor.kind}`);
  if (stored.keyFormat !== keyFormat.keyFormat) throw refuse(name, `its map keys were ${stored.keyFormat}`);
  for (const old of stored.formats) {
    try {
      checkCompatible(old, format);
    } catch (error) {
      throw refuse(name, MillraceError.from(error).message, error);
    }
  }
  if (stored.formats.at(-1) === format) return stored;
  const formats = [...stored.formats, format];
  if (formats.length > versionsMax) throw refuse(name, `has changed its format more than ${versionsMax} times`);
  return { ...stored, formats };
}

/** Lists grow, maps have many entries, and what is `apart` is rewritten only when it changes itself. */
function suitsRow(descriptor: StateDescriptor): boolean {
  return descriptor.kind !== 'list' && descriptor.kind !== 'map' && !descriptor.apart;
}

/**
 * The new states that lie in the row. All of one time to live, because the store removes a row only when its last value
 * has ended: that of the states which lie there already, else the one that most of those declared have.
 */
function namesInRow(states: Readonly<Record<string, CatalogEntry>>, shape: StateShape): ReadonlySet<string> {
  const groups = new Map<number, string[]>();
  for (const [name, descriptor] of Object.entries(shape)) {
    if (!suitsRow(descriptor)) continue;
    const durationMs = descriptor.ttl?.durationMs ?? Infinity;
    groups.set(durationMs, [...(groups.get(durationMs) ?? []), name]);
  }
  const isInRow = (name: string): boolean => Object.hasOwn(states, name) && states[name]?.inRow === true;
  let most: readonly string[] = [];
  for (const group of groups.values()) {
    if (group.some(isInRow)) return new Set(group);
    if (group.length > most.length) most = group;
  }
  return new Set(most.length > 1 ? most : []);
}

/**
 * The catalog of a table for the states declared now: names keep their ids, new ones get new ids. Throws
 * `state-incompatible`, naming state and field, when stored values could not be read.
 */
export function mergeCatalog(stored: Catalog | undefined, shape: StateShape, keyFormat: string): Catalog {
  const names = Object.keys(shape);
  if (names.length > statesMax) {
    throw new MillraceError('bad-argument', `an operator can have ${statesMax} states, not ${names.length}`);
  }
  if (stored !== undefined && stored.keyFormat !== keyFormat) {
    throw new MillraceError('state-incompatible', `keys were written as ${stored.keyFormat} and are now ${keyFormat}`);
  }
  const states: Record<string, CatalogEntry> = { ...stored?.states };
  const inRow = namesInRow(states, shape);
  let nextId = Math.max(0, ...Object.values(states).map((state) => state.id)) + 1;
  for (const name of names) {
    const before = Object.hasOwn(states, name) ? states[name] : undefined;
    const descriptor = shape[name] as StateDescriptor;
    const entry = merged(name, descriptor, before, nextId, inRow.has(name));
    if (entry.id === nextId) nextId++;
    states[name] = entry;
  }
  if (nextId > stateIdsReserved) throw new MillraceError('bad-argument', 'a table cannot hold more states');
  return { version: 1, keyFormat, ttlMaxMs: ttlMaxOf(stored, shape), states };
}

function ttlMaxOf(stored: Catalog | undefined, shape: StateShape): number {
  const all = Object.values(shape).map((descriptor) => descriptor.ttl?.durationMs ?? 0);
  if (stored !== undefined) all.push(stored.ttlMaxMs ?? 0);
  return all.includes(0) ? 0 : Math.max(0, ...all);
}

/** The declared states with their ids and decoders. */
export function definitionsOf(catalog: Catalog, shape: StateShape): StateDefinition[] {
  return Object.entries(shape).map(([name, descriptor], index) => {
    const entry = catalog.states[name] as CatalogEntry;
    const codec = codecOf(descriptor);
    const version = entry.formats.length - 1;
    const older: Decode<unknown>[] = entry.formats.slice(0, version).map((format) => decoderFor(codec, format));
    const inRow = entry.inRow === true;
    return { name, index, id: entry.id, descriptor, inRow, stored: new StoredValue(codec, version, older) };
  });
}
