export { BlockCache } from '@millrace/cache';
export type { Answer, EntryPage, KeyList, ValueList, ValueRef } from './answers.ts';
export type { BackgroundExecutor, FlushTask, MergeInput, MergeTask } from './background/executor.ts';
export { inlineExecutor } from './background/inline-executor.ts';
export { WorkerExecutor, type WorkerExecutorOptions } from './background/worker-executor.ts';
export type { BackgroundFiles, FilesModule, OpenBackgroundFiles } from './background/worker-protocol.ts';
export type { CompactionPolicy } from './compaction/picker.ts';
export { defaultLsmLimits, type LsmLimits } from './limits.ts';
export type { KeyRange } from './manifest/key-range.ts';
export { clipManifest, emptyManifest, filesOf, type Manifest, unionManifests } from './manifest/manifest.ts';
export { type ManifestJson, manifestFromJson, manifestToJson } from './manifest/manifest-json.ts';
export type { TableInfoJson } from './manifest/table-json.ts';
export { type CompactOptions, compact } from './remote/compact.ts';
export type { MergeJson } from './remote/merge-json.ts';
export type { MergeAnswer, MergeRequest, MergeService } from './remote/merge-service.ts';
export {
  defaultRemoteExecutorLimits,
  RemoteExecutor,
  type RemoteExecutorLimits,
  type RemoteExecutorOptions,
  type RemoteExecutorStats,
} from './remote/remote-executor.ts';
export type { TableInfo, TableOptions } from './sst/table-info.ts';
export {
  type LsmScan,
  type LsmSnapshot,
  type LsmStats,
  LsmTable,
  type LsmTableOptions,
} from './table/lsm-table.ts';
