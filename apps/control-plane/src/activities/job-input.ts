import { defaultMaxParallelism, MillraceError, maxParallelismLimit } from '@millrace/kernel';
import {
  type CheckpointMode,
  checkpointModes,
  compactionPlaces,
  type JobRecord,
  type JobSettings,
  type Json,
} from '@millrace/proto/control';
import { z } from 'zod';
import { findStart, noCheckpoint } from '../record/transitions.ts';

const json: z.ZodType<Json> = z.lazy(() =>
  z.union([z.null(), z.boolean(), z.number(), z.string(), z.array(json), z.record(z.string(), json)]),
);

/** Ids become parts of paths and of workflow ids. */
const id = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/, 'use 1 to 100 letters, digits, - and _, beginning with a letter or digit');

const startFrom = z.union(
  [
    z.enum(['latest', 'empty']),
    z.strictObject({ checkpoint: z.int().min(1) }),
    z.strictObject({ savepoint: z.string().min(1).max(200), claim: z.boolean().optional() }),
  ],
  'use "latest", "empty", {"checkpoint": n} or {"savepoint": "name"}',
);

const schema = z.strictObject({
  job: id,
  id: id.optional(),
  parallelism: z.int().min(1).max(maxParallelismLimit).optional(),
  maxParallelism: z.int().min(1).max(maxParallelismLimit).optional(),
  checkpointIntervalMs: z.int().min(100).max(86_400_000).optional(),
  options: z.record(z.string(), json).optional(),
  from: startFrom.optional(),
  allowDroppedState: z.boolean().optional(),
  checkpointMode: z.enum(checkpointModes).optional(),
  alignTimeoutMs: z.int().min(1).max(86_400_000).optional(),
  compaction: z.enum(compactionPlaces).optional(),
  checkpointsRetained: z.int().min(1).max(1000).optional(),
  failuresMax: z.int().min(0).max(1_000_000).optional(),
  roundTimeoutMs: z.int().min(100).max(86_400_000).optional(),
  cleanupIntervalMs: z.int().min(60_000).max(31_536_000_000).optional(),
});

const example = 'for example {"job":"flights"}';

/** The typed form of what somebody put into the workflow's input. Rejects in words, naming the field. */
export function parseJobInput(input: Json | undefined): z.infer<typeof schema> {
  return parseInput(schema, input, example);
}

/** The typed form of a workflow's input. Rejects in words, naming the field; `example` is such an input. */
export function parseInput<S extends z.ZodObject>(shape: S, input: Json | undefined, example: string): z.infer<S> {
  if (input === undefined || input === null) {
    throw bad(`The input is empty. It has to be a JSON object, ${example}.`, '');
  }
  if (typeof input !== 'object' || Array.isArray(input)) {
    const kind = Array.isArray(input) ? 'a list' : `a ${typeof input}`;
    throw bad(`The input is ${kind}. It has to be a JSON object, ${example}.`, '');
  }
  const parsed = shape.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  if (issue?.code === 'unrecognized_keys') {
    const known = Object.keys(shape.shape).join(', ');
    throw bad(`Unknown field "${issue.keys.join('", "')}". Fields are ${known}.`, issue.keys[0] ?? '');
  }
  throw bad(`Field "${path}": ${issue?.message ?? 'not usable'}.`, path);
}

/** How long a barrier waits in the mode `aligned-timeout` when the input does not say. */
const alignTimeoutMsDefault = 1000;

function overtakeAfterMs(input: z.infer<typeof schema>, clusterMode: CheckpointMode): number | undefined {
  const mode = input.checkpointMode ?? clusterMode;
  if (mode === 'aligned-timeout') return input.alignTimeoutMs ?? alignTimeoutMsDefault;
  if (input.alignTimeoutMs !== undefined) {
    throw bad(
      `Field "alignTimeoutMs" needs "checkpointMode": "aligned-timeout"; the mode is "${mode}".`,
      'alignTimeoutMs',
    );
  }
  return mode === 'unaligned' ? 0 : undefined;
}

/**
 * Fills in the defaults; what depends on the job's earlier life comes from its record, the mode of checkpoints from the
 * cluster when the input names none.
 */
export function jobSettings(
  input: z.infer<typeof schema>,
  record: JobRecord | undefined,
  clusterMode: CheckpointMode = 'aligned',
): JobSettings {
  const waitMs = overtakeAfterMs(input, clusterMode);
  const settings: JobSettings = {
    id: input.id ?? input.job,
    job: input.job,
    parallelism: input.parallelism ?? 1,
    maxParallelism: input.maxParallelism ?? record?.maxParallelism ?? defaultMaxParallelism,
    checkpointIntervalMs: input.checkpointIntervalMs ?? 10_000,
    options: input.options ?? {},
    from: input.from ?? 'latest',
    allowDroppedState: input.allowDroppedState ?? false,
    ...(waitMs === undefined ? {} : { overtakeAfterMs: waitMs }),
    ...(input.compaction === undefined ? {} : { compaction: input.compaction }),
    checkpointsRetained: input.checkpointsRetained ?? 3,
    failuresMax: input.failuresMax ?? 10,
    roundTimeoutMs: input.roundTimeoutMs ?? 600_000,
    cleanupIntervalMs: input.cleanupIntervalMs ?? 3_600_000,
  };
  if (settings.parallelism > settings.maxParallelism) {
    throw bad(
      `Field "parallelism": ${settings.parallelism} is more than maxParallelism ${settings.maxParallelism}.`,
      'parallelism',
    );
  }
  if (typeof settings.from === 'object') {
    const start = record === undefined || record.deleted === true ? undefined : findStart(record, settings.from);
    if (record === undefined) throw bad(`Field "from": job "${settings.id}" has no state.`, 'from');
    if (start === undefined) throw noCheckpoint(record, settings.from);
  } else if (record === undefined || record.finished || settings.from === 'empty') return settings;
  if (record.maxParallelism !== settings.maxParallelism) {
    throw bad(
      `Field "maxParallelism": the state of "${settings.id}" was made with ${record.maxParallelism} and cannot be read with ${settings.maxParallelism}. Leave the field out, or start with "from": "empty".`,
      'maxParallelism',
    );
  }
  if (record.job !== settings.job) {
    throw bad(
      `Field "id": the state of "${settings.id}" belongs to job "${record.job}". Choose another id, or start with "from": "empty".`,
      'id',
    );
  }
  return settings;
}

export function idOf(input: z.infer<typeof schema>): string {
  return input.id ?? input.job;
}

export { id as idSchema, json as jsonSchema };

function bad(message: string, field: string): MillraceError {
  return new MillraceError('job-input', message, { details: { field } });
}
