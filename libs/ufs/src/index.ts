export { type FileDelegation, type FileOrigin, fileOrigin } from './file-id.ts';
export type { DelegatingFileStore, FileReader, FileRef, FileStore, FileWriter } from './file-store.ts';
export { type Fork, type ForkRequest, forkCheckpoint } from './fork/fork-checkpoint.ts';
export type { JobRecords } from './fork/job-records.ts';
export { type SettleRequest, settleOrigins } from './fork/settle-origins.ts';
export { sweepForkPins } from './fork/sweep-fork-pins.ts';
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
export { type EraseReport, eraseJob } from './retention/erase.ts';
export { type JudgeContext, judgeFile, judgeRound, type Standing, type Verdict } from './retention/judge.ts';
export { type HolderSource, readLiveHolders } from './retention/live-holders.ts';
export { type RetireReport, type RetireRequest, retire } from './retention/retire.ts';
export { type SweepReport, type SweepRequest, sweepOrphans } from './retention/sweep.ts';
