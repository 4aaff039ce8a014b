import { AggregatingState } from '../handles/aggregating-state.ts';
import type { AggregatingDescriptor, ReducingDescriptor, StateShape } from '../handles/descriptors.ts';
import type { StateFacade } from '../handles/handles.ts';
import { ListState } from '../handles/list-state.ts';
import { MapState } from '../handles/map-state.ts';
import { ReducingState } from '../handles/reducing-state.ts';
import { ValueState } from '../handles/value-state.ts';
import type { StateTable } from '../store.ts';
import type { Entry } from './entry.ts';
import { MapCell } from './map-cell.ts';
import type { AccessScope } from './ports.ts';
import type { CellContext, StateDefinition } from './state-definition.ts';
import { ValueCell } from './value-cell.ts';

/** Writes the changed part of an entry that one state owns. */
interface SavableCell {
  save(entry: Entry): void;
}

/** A state ready for use: its cell, and how a record gets its handle. */
export interface RunningState {
  readonly definition: StateDefinition;
  readonly cell: SavableCell;
  handle(entry: Entry, scope: AccessScope): unknown;
}

export function runState(definition: StateDefinition, context: CellContext, table: StateTable): RunningState {
  const { descriptor } = definition;
  if (descriptor.kind === 'map') {
    const cell = new MapCell<unknown, unknown>(definition, context, table);
    return { definition, cell, handle: (entry, scope) => new MapState(cell, entry, scope) };
  }
  if (descriptor.kind === 'list') {
    const cell = new ValueCell<readonly unknown[]>(definition, context);
    return { definition, cell, handle: (entry, scope) => new ListState(cell, entry, scope) };
  }
  const cell = new ValueCell<unknown>(definition, context);
  switch (descriptor.kind) {
    case 'value':
      return { definition, cell, handle: (entry, scope) => new ValueState(cell, entry, scope) };
    case 'reducing': {
      const reducing: ReducingDescriptor<unknown> = descriptor;
      return { definition, cell, handle: (entry, scope) => new ReducingState(reducing, cell, entry, scope) };
    }
    case 'aggregating': {
      const aggregating: AggregatingDescriptor<unknown, unknown, unknown> = descriptor;
      return { definition, cell, handle: (entry, scope) => new AggregatingState(aggregating, cell, entry, scope) };
    }
  }
}

// Symbols, so that no name of a state can collide with them.
const entryOf: unique symbol = Symbol('entry');
const scopeOf: unique symbol = Symbol('scope');

export type FacadeClass<S extends StateShape> = new (entry: Entry, scope: AccessScope) => StateFacade<S>;

/** A class with a getter for each state: making a facade costs one small object, a handle another when it is used. */
export function facadeClass<S extends StateShape>(states: ReadonlyMap<string, RunningState>): FacadeClass<S> {
  class Facade {
    readonly [entryOf]: Entry;
    readonly [scopeOf]: AccessScope;
    constructor(entry: Entry, scope: AccessScope) {
      this[entryOf] = entry;
      this[scopeOf] = scope;
    }
  }
  for (const [name, state] of states) {
    Object.defineProperty(Facade.prototype, name, {
      enumerable: true,
      get(this: Facade) {
        return state.handle(this[entryOf], this[scopeOf]);
      },
    });
  }
  return Facade as unknown as FacadeClass<S>;
}
