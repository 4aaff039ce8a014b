export type { Codec, CodecType } from './codec.ts';
export type { PackedKeys, PackedValues } from './packed.ts';
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
export { WriteBatch } from './write-batch.ts';
