import { maxParallelismLimit } from '@millrace/kernel';
import { type Json, stopModes } from '@millrace/proto/control';
import { z } from 'zod';
import { idSchema, jsonSchema, parseInput } from './job-input.ts';

/** Inputs of the operations' workflows, as a person types them. */

const savepointName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
    'use 1 to 100 letters, digits, ., - and _, beginning with a letter or digit',
  );
const parallelism = z.int().min(1).max(maxParallelismLimit);
const from = z.union(
  [z.int().min(1), z.string().min(1).max(200)],
  'use the number of a checkpoint or the name of a savepoint',
);
const start = {
  job: idSchema,
  from: from.optional(),
  parallelism: parallelism.optional(),
  options: z.record(z.string(), jsonSchema).optional(),
  allowDroppedState: z.boolean().optional(),
};

const shapes = {
  rescale: z.strictObject({
    job: idSchema,
    parallelism,
    timeoutMs: z.int().min(1_000).max(86_400_000).optional(),
  }),
  savepoint: z.strictObject({ job: idSchema, name: savepointName.optional() }),
  stop: z.strictObject({ job: idSchema, mode: z.enum(stopModes).optional(), savepoint: savepointName.optional() }),
  restore: z.strictObject({ ...start, claim: z.boolean().optional() }),
  fork: z.strictObject({ ...start, id: idSchema }),
  release: z.strictObject({ job: idSchema, savepoint: z.string().min(1).max(200) }),
  checkpoints: z.strictObject({ job: idSchema }),
  deleteJob: z.strictObject({ job: idSchema, savepoints: z.boolean().optional() }),
  ttlCleanup: z.strictObject({ job: idSchema, graceMs: z.int().min(0).max(31_536_000_000).optional() }),
};

const examples: { readonly [K in keyof typeof shapes]: string } = {
  rescale: '{"job":"flights","parallelism":4}',
  savepoint: '{"job":"flights","name":"before-upgrade"}',
  stop: '{"job":"flights","mode":"suspend"}',
  restore: '{"job":"flights","from":"before-upgrade"}',
  fork: '{"job":"flights","id":"flights-trial"}',
  release: '{"job":"flights","savepoint":"before-upgrade"}',
  checkpoints: '{"job":"flights"}',
  deleteJob: '{"job":"flights"}',
  ttlCleanup: '{"job":"flights"}',
};

export type OperationName = keyof typeof shapes;
export type OperationInput<K extends OperationName> = z.infer<(typeof shapes)[K]>;

/** Rejects in words, naming the field. */
export function parseOperation<K extends OperationName>(name: K, input: Json | undefined): OperationInput<K> {
  return parseInput(shapes[name] as z.ZodObject, input, `for example ${examples[name]}`) as OperationInput<K>;
}
