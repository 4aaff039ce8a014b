import type { ErrorJson } from '@millrace/kernel';
import type { CompactionResult, CompactionTask } from '@millrace/proto';

/** From a slot to the main thread, which talks to Temporal. */
export type CompactionRequest =
  | { readonly kind: 'compact'; readonly id: number; readonly task: CompactionTask; readonly timeoutMs: number }
  | { readonly kind: 'cancel'; readonly id: number };

/** The answer. */
export type CompactionResponse =
  | { readonly id: number; readonly result: CompactionResult }
  | { readonly id: number; readonly error: ErrorJson };

/** Whoever finds a compactor for a task. */
export interface Compactions {
  /**
   * Rejects with `compaction-unanswered` when nobody takes the task soon, with `compaction-failed` when it fails or takes
   * longer than `timeoutMs`, and with the signal's reason when it is aborted.
   */
  compact(task: CompactionTask, timeoutMs: number, signal: AbortSignal): Promise<CompactionResult>;
}
