import { MillraceError } from '@millrace/kernel';
import type { CreateStateBackend } from '@millrace/state';
import { z } from 'zod';
import { openKvStore } from './kv-store.ts';
import { rocksDbEngine } from './rocksdb/rocksdb-engine.ts';

const mib = 1024 * 1024;

const optionsSchema = z.strictObject({
  /** One memtable; each table has two at most. */
  memtableBytes: z
    .number()
    .int()
    .min(64 * 1024)
    .max(1024 * mib)
    .default(16 * mib),
  sweepEntriesPerSecond: z.number().int().min(1).max(10_000_000).default(20_000),
});

/** The backend `kv` of the state-service: shards on RocksDB in the service's directory. */
export const createStateBackend: CreateStateBackend = ({ directory, options, clock, random, telemetry }) => {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const text = `the options of the backend kv are wrong at "${issue?.path.join('.')}": ${issue?.message}. Set --backend-options or MILLRACE_STATE_SERVICE_BACKEND_OPTIONS.`;
    throw new MillraceError('bad-setting', text, { details: { setting: 'backendOptions' } });
  }
  const { memtableBytes, sweepEntriesPerSecond } = parsed.data;
  const engine = rocksDbEngine({ memtableBytes });
  return openKvStore({ directory, engine, sweepEntriesPerSecond, clock, random, telemetry });
};
