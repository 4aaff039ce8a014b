/** The door: `state-service --backend ./examples/backend-redis`, `millrace run --state ./examples/backend-redis`. */
import { MillraceError } from '@millrace/kernel';
import type { CreateStateBackend } from '@millrace/state';
import { z } from 'zod';
import { RedisStore } from './redis-store.ts';

const optionsSchema = z.strictObject({
  url: z
    .string()
    .regex(/^rediss?:\/\//, 'write redis://host:port or rediss://…')
    .default('redis://127.0.0.1:6379'),
  /** In front of the name of every key, for a Redis that others use too. */
  prefix: z.string().max(100).default('millrace:'),
  /** Bytes of writes of one table that Redis has not answered before `write` is backpressure. */
  waitingBytesMax: z
    .number()
    .int()
    .min(1024)
    .default(16 * 1024 * 1024),
});

export const createStateBackend: CreateStateBackend = async ({ options, clock }) => {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const text = `the options of the backend redis are wrong at "${issue?.path.join('.')}": ${issue?.message}. Set --backend-options, for example {"url":"redis://127.0.0.1:6379"}.`;
    throw new MillraceError('bad-setting', text, { details: { setting: 'backendOptions' } });
  }
  return RedisStore.open({ ...parsed.data, clock });
};
