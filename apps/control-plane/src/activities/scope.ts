import type { TraceContext } from '@millrace/telemetry';

/** What one try of an activity runs in. */
export interface StepScope {
  /** Aborted when the workflow cancelled the step or this process shuts down. */
  readonly signal: AbortSignal;
  readonly parent: TraceContext | undefined;
  /**
   * Parts of the step that need not be done again: earlier tries leave them to later ones with their heartbeats. A hint,
   * for it may be lost; absent: nothing is remembered.
   */
  readonly done?: Pick<Set<string>, 'has' | 'add'>;
}
