import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MillraceError, type Random } from '@millrace/kernel';
import { compactionPlaces } from '@millrace/proto/control';
import { z } from 'zod';
import { slotMemoryBytesMin } from './slots/slot-budget.ts';
import { stateBackends } from './slots/slot-protocol.ts';

const mib = 1024 * 1024;

const integer = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

/** `512m`, `2g` or bytes. */
const size = z
  .string()
  .regex(/^\d{1,15}[kmg]?$/i, 'write bytes, or a number with k, m or g behind it')
  .transform((text) => {
    const unit = { k: 1024, m: mib, g: 1024 * mib }[text.at(-1)?.toLowerCase() as 'k' | 'm' | 'g'];
    return unit === undefined ? Number(text) : Number(text.slice(0, -1)) * unit;
  });

/** Path of a file that is there; nothing when empty. */
const file = z
  .string()
  .refine((path) => path === '' || existsSync(path), 'there is no such file')
  .transform((path) => (path === '' ? undefined : path));

/** host:port, or a comma-separated list of them; each may have a name: `a=host:port`. Nothing when empty. */
const instances = z
  .string()
  .regex(/^$|^(([\w.-]+=)?[^\s:,=]+:\d{1,5}(,(?!$)|$))+$/, 'write host:port, or a list name=host:port,…')
  .transform((text) =>
    text.split(',').map((one) => {
      const [name, at] = one.includes('=') ? one.split('=') : [one, one];
      return { name: name as string, address: at as string };
    }),
  )
  .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'name each instance once')
  .transform((list) => (list[0]?.address === '' ? undefined : list));

/** host:port */
const address = z.string().regex(/^[^\s:]+:\d{1,5}$/, 'write host:port');

const schema = z.object({
  temporalAddress: address,
  namespace: z.string().min(1),
  state: z.string().min(1),
  stateBackend: z.enum(stateBackends),
  /** Only for the backend `remote`. */
  stateService: instances,
  stateServiceCa: file,
  stateServiceTokenFile: file,
  /** Of jobs that do not say it. */
  compaction: z.enum(compactionPlaces),
  jobs: z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== ''),
    )
    .pipe(z.array(z.string()).min(1, 'name at least one path, glob or package')),
  /** Empty: beside the state when that is remote, otherwise none. `off`: none. */
  diskCache: z.string(),
  diskCacheBytes: size.pipe(z.number().min(mib, 'at least 1m')),
  diskCacheReserve: size,
  diskCachePolicy: z.enum(['history', 'lru', 's3-fifo']),
  runnerId: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'use letters, digits, ".", "_" and "-", at most 100'),
  host: z.string().min(1),
  port: integer(0, 65_535),
  slots: integer(1, 64),
  slotMemory: size.pipe(z.number().min(slotMemoryBytesMin, `at least ${slotMemoryBytesMin / mib}m`)),
  inFlightLimit: integer(1, 1_000_000),
  frameBytes: size.pipe(
    z
      .number()
      .min(1024)
      .max(4 * mib),
  ),
  frameDelayMs: integer(0, 10_000),
  channelWindowBytes: size.pipe(
    z
      .number()
      .min(4096)
      .max(64 * mib),
  ),
  /** Empty: no metrics endpoint. */
  metricsPort: z.union([z.literal('').transform(() => undefined), integer(0, 65_535)]),
});

/** A task-runner's settings, checked and frozen. */
export type RunnerSettings = Readonly<z.output<typeof schema>>;

/** Where each setting comes from: flag, then environment, then default. */
const sources = {
  temporalAddress: { flag: 'temporal-address', env: 'MILLRACE_TEMPORAL_ADDRESS', fallback: '127.0.0.1:7233' },
  namespace: { flag: 'namespace', env: 'MILLRACE_NAMESPACE', fallback: 'default' },
  state: { flag: 'state', env: 'MILLRACE_STATE', fallback: resolve('.millrace/state') },
  stateBackend: { flag: 'state-backend', env: 'MILLRACE_STATE_BACKEND', fallback: 'lsm' },
  stateService: { flag: 'state-service', env: 'MILLRACE_STATE_SERVICE', fallback: '' },
  stateServiceCa: { flag: 'state-service-ca', env: 'MILLRACE_STATE_SERVICE_CA', fallback: '' },
  stateServiceTokenFile: {
    flag: 'state-service-token-file',
    env: 'MILLRACE_STATE_SERVICE_TOKEN_FILE',
    fallback: '',
  },
  compaction: { flag: 'compaction', env: 'MILLRACE_COMPACTION', fallback: 'local' },
  jobs: { flag: 'jobs', env: 'MILLRACE_JOBS', fallback: resolve(import.meta.dirname, '../../../examples/*/*.ts') },
  diskCache: { flag: 'disk-cache', env: 'MILLRACE_DISK_CACHE', fallback: '' },
  diskCacheBytes: { flag: 'disk-cache-bytes', env: 'MILLRACE_DISK_CACHE_BYTES', fallback: '8g' },
  diskCacheReserve: { flag: 'disk-cache-reserve', env: 'MILLRACE_DISK_CACHE_RESERVE', fallback: '2g' },
  diskCachePolicy: { flag: 'disk-cache-policy', env: 'MILLRACE_DISK_CACHE_POLICY', fallback: 'history' },
  runnerId: { flag: 'runner-id', env: 'MILLRACE_RUNNER_ID', fallback: '' },
  host: { flag: 'host', env: 'MILLRACE_RUNNER_HOST', fallback: '127.0.0.1' },
  port: { flag: 'port', env: 'MILLRACE_RUNNER_PORT', fallback: '0' },
  slots: { flag: 'slots', env: 'MILLRACE_RUNNER_SLOTS', fallback: '2' },
  slotMemory: { flag: 'slot-memory', env: 'MILLRACE_SLOT_MEMORY', fallback: '512m' },
  inFlightLimit: { flag: 'in-flight-limit', env: 'MILLRACE_IN_FLIGHT_LIMIT', fallback: '6000' },
  frameBytes: { flag: 'frame-bytes', env: 'MILLRACE_FRAME_BYTES', fallback: '32k' },
  frameDelayMs: { flag: 'frame-delay-ms', env: 'MILLRACE_FRAME_DELAY_MS', fallback: '5' },
  channelWindowBytes: { flag: 'channel-window', env: 'MILLRACE_CHANNEL_WINDOW', fallback: '256k' },
  metricsPort: { flag: 'metrics-port', env: 'MILLRACE_METRICS_PORT', fallback: '' },
} as const satisfies Record<keyof RunnerSettings, { flag: string; env: string; fallback: string }>;

type Name = keyof typeof sources;

/** Reads flags and environment. Throws `bad-setting`, which names the setting and what is allowed. */
export function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv, random: Random): RunnerSettings {
  const flags = readFlags(argv);
  const names = Object.keys(sources) as Name[];
  const raw = Object.fromEntries(
    names.map((name) => {
      const { flag, env: variable, fallback } = sources[name];
      const given = flags[flag] ?? env[variable];
      return [name, given === undefined || given === '' ? fallback : given];
    }),
  );
  if (raw.runnerId === '')
    raw.runnerId = `${hostname()
      .replaceAll(/[^A-Za-z0-9.-]/g, '-')
      .slice(0, 60)}-${random.hex(4)}`;
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw badSetting(parsed.error.issues[0], raw);
  const settings = parsed.data;
  if (settings.frameBytes > settings.channelWindowBytes) {
    const text = 'setting "frameBytes" is larger than "channelWindowBytes"; make the window at least one frame';
    throw new MillraceError('bad-setting', text, { details: { setting: 'frameBytes' } });
  }
  if (settings.stateBackend === 'remote' && settings.stateService === undefined) {
    const text =
      'setting "stateService" is empty: the backend "remote" needs it. Set --state-service or MILLRACE_STATE_SERVICE.';
    throw new MillraceError('bad-setting', text, { details: { setting: 'stateService' } });
  }
  return Object.freeze(settings);
}

/** The disk cache that the settings ask for: where it is named, or by default where the state is remote. */
export function diskCacheSettings(settings: RunnerSettings): DiskCacheChoice | undefined {
  const { diskCache, diskCacheBytes: bytesMax, diskCacheReserve: reserveBytes, diskCachePolicy: policy } = settings;
  if (diskCache === 'off' || (diskCache === '' && !isRemote(settings.state))) return undefined;
  return { directory: resolve(diskCache === '' ? '.millrace/disk-cache' : diskCache), bytesMax, reserveBytes, policy };
}

export interface DiskCacheChoice {
  readonly directory: string;
  readonly bytesMax: number;
  readonly reserveBytes: number;
  readonly policy: RunnerSettings['diskCachePolicy'];
}

/** Whether a file system lies across a network, by its URI. */
function isRemote(uri: string): boolean {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(uri)?.[1]?.toLowerCase();
  return scheme !== undefined && scheme !== 'file' && scheme !== 'memory';
}

function readFlags(argv: readonly string[]): Record<string, string | undefined> {
  const options = Object.fromEntries(Object.values(sources).map(({ flag }) => [flag, { type: 'string' as const }]));
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values;
  } catch (error) {
    throw new MillraceError('bad-setting', error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function badSetting(issue: z.core.$ZodIssue | undefined, raw: Record<string, unknown>): MillraceError {
  const name = String(issue?.path[0]) as Name;
  const { flag, env } = sources[name];
  const value = String(raw[name]);
  return new MillraceError(
    'bad-setting',
    `setting "${name}" is ${JSON.stringify(value)}: ${issue?.message}. Set --${flag} or ${env}.`,
    { details: { setting: name, value } },
  );
}
