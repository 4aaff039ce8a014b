import type { ErrorJson } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileRef, FileStore } from '@millrace/ufs';
import type { TableInfo } from '../sst/table-info.ts';
import type { FlushTask, MergeTask } from './executor.ts';

/** Where the thread gets its files from: a module that exports `openBackgroundFiles`, and what it is called with. */
export interface FilesModule {
  /** Absolute: a `file:` URL or a package name. */
  readonly specifier: string;
  /** Plain data. */
  readonly config: unknown;
}

/** What the module's `openBackgroundFiles(config)` gives. */
export interface BackgroundFiles {
  readonly files: FileStore;
  close(): Promise<void>;
}

export type OpenBackgroundFiles = (config: unknown) => Promise<BackgroundFiles>;

/** To the thread. */
export type WorkerRequest =
  | { readonly kind: 'flush'; readonly id: number; readonly task: FlushTask; readonly parent: TraceContext | undefined }
  | { readonly kind: 'merge'; readonly id: number; readonly task: MergeTask; readonly parent: TraceContext | undefined }
  | { readonly kind: 'discard'; readonly files: readonly FileRef[] }
  | { readonly kind: 'close' };

/** From the thread. */
export type WorkerResponse =
  | { readonly id: number; readonly tables: readonly TableInfo[] }
  | { readonly id: number; readonly error: ErrorJson };
