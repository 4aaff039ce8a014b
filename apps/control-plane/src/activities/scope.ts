import type { TraceContext } from '@millrace/telemetry';

/** What one try of an activity runs in. */
export interface StepScope {
  /** Aborted when the workflow cancelled the step or this process shuts down. */
  readonly signal: AbortSignal;
  readonly parent: TraceContext | undefined;
}
