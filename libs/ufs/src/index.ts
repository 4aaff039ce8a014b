export { type FileOrigin, fileOrigin } from './file-id.ts';
export type { FileReader, FileRef, FileStore, FileWriter } from './file-store.ts';
export type { Holder } from './holder.ts';
export { type HolderStore, Holders } from './holders.ts';
export { JobFiles, type JobFilesOptions } from './job-files.ts';
export { type JobStorage, type JobStorageOptions, openJobStorage } from './job-storage.ts';
export { JobNamespace, type RoundObject, type SnapshotName } from './namespace.ts';
export { Reaper, type ReaperOptions, type ReaperStats, type RemovalResult } from './reaper.ts';
export {
  type ClaimOptions,
  FencedObject,
  type FencedObjectOptions,
  type UpdateOptions,
} from './record/fenced-object.ts';
export type { Version } from './record/version.ts';
export { filesToFree } from './retention.ts';
