import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MillraceError } from '@millrace/kernel';
import { z } from 'zod';

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

/** State travels unencrypted and unauthenticated for now, so it does not leave the machine. */
const loopback = z
  .string()
  .regex(/^(localhost|127(\.\d{1,3}){3}|::1)$/, 'use a loopback address (127.0.0.1): there is no TLS yet');

const backends = ['lsm', 'memory'] as const;

const schema = z.object({
  state: z.string().min(1),
  backend: z.enum(backends),
  host: loopback,
  port: integer(0, 65_535),
  tablesMax: integer(1, 100_000),
  cache: size,
  memtable: size.pipe(
    z
      .number()
      .min(64 * 1024, 'at least 64k')
      .max(1024 * mib, 'at most 1g'),
  ),
  drainMs: integer(0, 600_000),
});

/** A state-service's settings, checked and frozen. */
export type ServiceSettings = Readonly<z.output<typeof schema>>;

/** Where each setting comes from: flag, then environment, then default. */
const sources = {
  state: {
    flag: 'state',
    env: 'MILLRACE_STATE',
    fallback: resolve('.millrace/state'),
    help: 'where state lives: a directory or the URI of a file system',
  },
  backend: { flag: 'backend', env: 'MILLRACE_STATE_SERVICE_BACKEND', fallback: 'lsm', help: backends.join(' or ') },
  host: { flag: 'host', env: 'MILLRACE_STATE_SERVICE_HOST', fallback: '127.0.0.1', help: 'a loopback address' },
  port: { flag: 'port', env: 'MILLRACE_STATE_SERVICE_PORT', fallback: '7300', help: '0 for any' },
  tablesMax: { flag: 'tables-max', env: 'MILLRACE_STATE_TABLES_MAX', fallback: '256', help: 'open tables at most' },
  cache: { flag: 'cache', env: 'MILLRACE_STATE_CACHE', fallback: '256m', help: 'block cache of each attempt' },
  memtable: { flag: 'memtable', env: 'MILLRACE_STATE_MEMTABLE', fallback: '8m', help: 'one memtable of each table' },
  drainMs: { flag: 'drain-ms', env: 'MILLRACE_STATE_DRAIN_MS', fallback: '3000', help: 'grace after SIGTERM' },
} as const satisfies Record<keyof ServiceSettings, { flag: string; env: string; fallback: string; help: string }>;

type Name = keyof typeof sources;

/** The text of `--help`. */
export function helpText(): string {
  const rows = Object.values(sources).map(({ flag, env, fallback, help }) => {
    return `  --${flag.padEnd(12)} ${help} (${env}; default ${fallback})`;
  });
  return [
    'state-service: serves state tables to task-runners over gRPC',
    '',
    ...rows,
    '  --help         this text',
  ].join('\n');
}

/** Reads flags and environment. Throws `bad-setting`, which names the setting and what is allowed. */
export function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): ServiceSettings {
  const flags = readFlags(argv);
  const raw = Object.fromEntries(
    (Object.keys(sources) as Name[]).map((name) => {
      const { flag, env: variable, fallback } = sources[name];
      const given = flags[flag] ?? env[variable];
      return [name, given === undefined || given === '' ? fallback : given];
    }),
  );
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw badSetting(parsed.error.issues[0], raw);
  return Object.freeze(parsed.data);
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
