import { MillraceError } from '@millrace/kernel';
import { z } from 'zod';

const integer = (min: number, max: number) => z.number().int().min(min).max(max);

const settingsSchema = z
  .strictObject({
    /** Hosts of the ring, some of them; the driver finds the others. */
    contactPoints: z.array(z.string().min(1)).min(1),
    port: integer(1, 65_535).default(9042),
    localDataCenter: z.string().min(1).default('datacenter1'),
    keyspace: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,47}$/)
      .default('millrace'),
    /** Of the keyspace, when this store makes it; one that exists is left as it is. */
    replicationFactor: integer(1, 9).default(3),
    /** False: the keyspace and its tables are there, and this user may not make any. */
    createSchema: z.boolean().default(true),
    username: z.string().min(1).optional(),
    password: z.string().optional(),
    /** Path of the certificate of the authority that signed the ring's; TLS is used when it is set. */
    caFile: z.string().min(1).optional(),
    /** Partitions of a shard, for tables that are new; a stored table keeps the number that it began with. */
    buckets: integer(1, 256).default(4),
    /** One request to the ring; it is repeated until `giveUpAfterMs`. */
    requestTimeoutMs: integer(100, 120_000).default(5000),
    giveUpAfterMs: integer(0, 600_000).default(60_000),
    /** A read that takes longer is also asked of another node. 0 for never. */
    speculateAfterMs: integer(0, 60_000).default(500),
    /** Below `batch_size_fail_threshold` of the ring, 50 KiB by default. A larger value travels alone. */
    batchBytesMax: integer(1024, 16 * 1024 * 1024).default(40_000),
    batchEntriesMax: integer(1, 65_535).default(200),
    /** Batches and reads of one table that are under way at once. */
    requestsMax: integer(1, 1024).default(32),
    keysPerRead: integer(1, 1000).default(64),
    /** Bytes of writes of one table that wait for the ring before `write` is backpressure. */
    waitingBytesMax: integer(1024, 1024 * 1024 * 1024).default(16 * 1024 * 1024),
    /** Below half of the ring's `commitlog_segment_size`. */
    valueBytesMax: integer(1024, 64 * 1024 * 1024).default(3 * 1024 * 1024),
    /** Rows that the purge looks at in a second, of each table. */
    purgeRowsPerSecond: integer(1, 1_000_000).default(5000),
    /** How much longer than its time to live the ring keeps an entry: more than any two clocks differ. */
    ttlSlackMs: integer(0, 86_400_000).default(60_000),
  })
  .refine(({ username, password }) => (username === undefined) === (password === undefined), {
    path: ['username'],
    message: 'username and password go together',
  });

/** Checked; what the option `--backend-options` of the state-service says. */
export type CqlSettings = Readonly<z.output<typeof settingsSchema>>;

/** Throws `bad-setting`, which names the option and what is allowed. */
export function readCqlSettings(options: Readonly<Record<string, unknown>>): CqlSettings {
  const parsed = settingsSchema.safeParse(options);
  if (parsed.success) return Object.freeze(parsed.data);
  const [issue] = parsed.error.issues;
  const text = `the options of the backend cql are wrong at "${issue?.path.join('.')}": ${issue?.message}. Set --backend-options or MILLRACE_STATE_SERVICE_BACKEND_OPTIONS, for example {"contactPoints":["10.0.0.1"],"localDataCenter":"datacenter1"}.`;
  throw new MillraceError('bad-setting', text, { details: { setting: 'backendOptions' } });
}
