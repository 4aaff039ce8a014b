/*
 * Keyed state. An operator host makes these calls, in this order:
 *
 *   const workingSet = new WorkingSet({ bytesMax, cacheBytesMax, clock });                       // once per slot
 *   const table = await store.openTable(spec, handles);                    // once per operator
 *   const state = await openKeyedState({ table, restored: handles.length > 0, shape, workingSet, clock, batcher });
 *
 *   // for each record, timer or spawned piece of work of a key
 *   const full = state.room();                                             // backpressure
 *   if (full !== undefined) await full;
 *   const entry = state.enter(key);                                        // or enter(key, window)
 *   const facade = state.facade(entry, scope);                             // the handler's `ctx.state`
 *   … handler: facade.total.get(), facade.total.set(…) …
 *   state.leave(entry);
 *
 *   state.eventTimers.register(entry, timeMs);                             // while the entry is pinned
 *   const due = await state.eventTimers.popDue(watermarkMs, 1000);         // until it is empty
 *
 *   const handle = await state.snapshot(checkpoint, parent);               // drained; the part before the promise is short
 *   await state.close();                                                   // closes the table, too
 */
export type { CreateStateBackend, RetainedSnapshots, StateBackendContext } from './backend.ts';
export type { Codec, CodecType, Decode } from './codec.ts';
export { array, nullable, optional } from './codecs/composed.ts';
export { decoderFor } from './codecs/decoder-for.ts';
export { checkCompatible } from './codecs/format.ts';
export { msgpack } from './codecs/msgpack.ts';
export { bool, bytes, float64, int64, json, string } from './codecs/primitives.ts';
export { type StructFields, type StructType, struct } from './codecs/struct.ts';
export { checkCoverage, overlap } from './coverage.ts';
export { type Claim, Generations } from './generations.ts';
export {
  type Aggregate,
  type AggregatingDescriptor,
  aggregating,
  type ListDescriptor,
  list,
  type MapDescriptor,
  map,
  type ReducingDescriptor,
  reducing,
  type StateDescriptor,
  type StateOptions,
  type StateShape,
  type ValueDescriptor,
  value,
} from './handles/descriptors.ts';
export type {
  AggregatingHandle,
  HandleOf,
  ListHandle,
  MapHandle,
  MapRange,
  ReducingHandle,
  StateFacade,
  ValueHandle,
} from './handles/handles.ts';
export type { Ttl, TtlOptions, TtlRefresh } from './handles/ttl.ts';
export type {
  AccessScope,
  BatcherFactory,
  DueTimer,
  KeyedState,
  KeyedStateOptions,
  RequestBatcher,
  StateEntry,
  TimerQueue,
} from './keyed/ports.ts';
export { openKeyedState } from './keyed/slot-keyed-state.ts';
export { microtaskBatcher } from './keyed/table-reader.ts';
export { type Resident, WorkingSet, type WorkingSetOptions } from './keyed/working-set.ts';
export { keyCodec, keyOf } from './keys/key-codec.ts';
export {
  type ByteRange,
  catalogStateId,
  eventTimerStateId,
  parseStoredKey,
  processingTimerStateId,
  rangeOfPrefix,
  readLength,
  type StoredKey,
  stateIdsReserved,
  writeLength,
  writePrefix,
  writeSized,
} from './keys/key-layout.ts';
export type { KeyValue } from './keys/key-value.ts';
export { type PrimitiveKey, primitiveKey } from './keys/primitive-key.ts';
export { MemoryStateStore } from './memory/memory-state-store.ts';
export { meteredStore } from './metered/metered-store.ts';
export { type PackedKeys, type PackedValues, packedItem, packedValue, packKeys, packValues } from './packed.ts';
export type { Decoded, StoredState } from './reading/stored-states.ts';
export { type EntrySelection, type InspectedEntry, TableInspector } from './reading/table-inspector.ts';
export type {
  Peek,
  ScanPage,
  ScanRange,
  SnapshotHandle,
  StateStore,
  StateTable,
  TableSpec,
  TableStats,
  ValueView,
} from './store.ts';
export { type PackedBatch, WriteBatch } from './write-batch.ts';
