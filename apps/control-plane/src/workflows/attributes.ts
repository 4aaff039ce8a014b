import { type JobState, searchAttributes } from '@millrace/proto/control';
import { defineSearchAttributeKey, type SearchAttributeUpdatePair } from '@temporalio/common';
import { upsertSearchAttributes } from '@temporalio/workflow';

const keys = {
  job: defineSearchAttributeKey('millraceJob', searchAttributes.millraceJob),
  state: defineSearchAttributeKey('millraceState', searchAttributes.millraceState),
  generation: defineSearchAttributeKey('millraceGeneration', searchAttributes.millraceGeneration),
  parallelism: defineSearchAttributeKey('millraceParallelism', searchAttributes.millraceParallelism),
  checkpoint: defineSearchAttributeKey('millraceCheckpoint', searchAttributes.millraceCheckpoint),
};

export interface Attributes {
  readonly job?: string;
  readonly state?: JobState;
  readonly generation?: number;
  readonly parallelism?: number;
  readonly checkpoint?: number;
}

/** Sets what lists of workflows can be filtered by; one event. */
export function setAttributes(attributes: Attributes): void {
  const pairs: SearchAttributeUpdatePair[] = [];
  if (attributes.job !== undefined) pairs.push({ key: keys.job, value: attributes.job });
  if (attributes.state !== undefined) pairs.push({ key: keys.state, value: attributes.state });
  if (attributes.generation !== undefined) pairs.push({ key: keys.generation, value: attributes.generation });
  if (attributes.parallelism !== undefined) pairs.push({ key: keys.parallelism, value: attributes.parallelism });
  if (attributes.checkpoint !== undefined) pairs.push({ key: keys.checkpoint, value: attributes.checkpoint });
  upsertSearchAttributes(pairs);
}
