import { existsSync } from 'node:fs';
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

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/** Path of a file that is there; nothing when empty. */
const file = z
  .string()
  .refine((path) => path === '' || existsSync(path), 'there is no such file')
  .transform((path) => (path === '' ? undefined : path));

/** JSON object as text. */
const jsonObject = z.string().transform((text, context): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // told below
  }
  context.addIssue('write one JSON object');
  return z.NEVER;
});

const schema = z.object({
  state: z.string().min(1),
  backend: z.string().min(1),
  backendOptions: jsonObject,
  directory: z.string().min(1),
  host: z.string().min(1),
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
  tlsCert: file,
  tlsKey: file,
  tokenFile: file,
  /** Nothing when empty: no metrics endpoint. */
  metricsPort: z
    .string()
    .regex(/^\d{0,5}$/, 'write a port, 0 for any')
    .transform((text) => (text === '' ? undefined : Number(text))),
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
  backend: {
    flag: 'backend',
    env: 'MILLRACE_STATE_SERVICE_BACKEND',
    fallback: 'lsm',
    help: 'lsm, memory, kv, cql, a package, or a path beginning with ./',
  },
  backendOptions: {
    flag: 'backend-options',
    env: 'MILLRACE_STATE_SERVICE_BACKEND_OPTIONS',
    fallback: '{}',
    help: 'what the backend takes, as JSON',
  },
  directory: {
    flag: 'directory',
    env: 'MILLRACE_STATE_SERVICE_DIRECTORY',
    fallback: resolve('.millrace/state-service'),
    help: "where the backend keeps what is its own on this machine's disk",
  },
  host: {
    flag: 'host',
    env: 'MILLRACE_STATE_SERVICE_HOST',
    fallback: '127.0.0.1',
    help: 'one that is no loopback address needs --tls-cert, --tls-key and --token-file',
  },
  port: { flag: 'port', env: 'MILLRACE_STATE_SERVICE_PORT', fallback: '7300', help: '0 for any' },
  tablesMax: { flag: 'tables-max', env: 'MILLRACE_STATE_TABLES_MAX', fallback: '256', help: 'open tables at most' },
  cache: { flag: 'cache', env: 'MILLRACE_STATE_CACHE', fallback: '256m', help: 'block cache of each attempt' },
  memtable: { flag: 'memtable', env: 'MILLRACE_STATE_MEMTABLE', fallback: '8m', help: 'one memtable of each table' },
  drainMs: { flag: 'drain-ms', env: 'MILLRACE_STATE_DRAIN_MS', fallback: '3000', help: 'grace after SIGTERM' },
  tlsCert: { flag: 'tls-cert', env: 'MILLRACE_STATE_SERVICE_TLS_CERT', fallback: '', help: 'certificate chain, PEM' },
  tlsKey: { flag: 'tls-key', env: 'MILLRACE_STATE_SERVICE_TLS_KEY', fallback: '', help: 'its private key, PEM' },
  tokenFile: {
    flag: 'token-file',
    env: 'MILLRACE_STATE_SERVICE_TOKEN_FILE',
    fallback: '',
    help: 'file with the token that clients have to show',
  },
  metricsPort: {
    flag: 'metrics-port',
    env: 'MILLRACE_METRICS_PORT',
    fallback: '',
    help: 'serves /metrics there; 0: any',
  },
} as const satisfies Record<keyof ServiceSettings, { flag: string; env: string; fallback: string; help: string }>;

type Name = keyof typeof sources;

/** The text of `--help`. */
export function helpText(): string {
  const rows = Object.values(sources).map(({ flag, env, fallback, help }) => {
    return `  --${flag.padEnd(12)} ${help} (${env}; default ${fallback})`;
  });
  return [
    'state-service: serves state tables to task-runners over gRPC; with --role compactor it merges state files for them',
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
  checkSecurity(parsed.data);
  return Object.freeze(parsed.data);
}

/** State and token may only leave the machine encrypted, and only for those who may see it. */
function checkSecurity(settings: ServiceSettings): void {
  const { host, tlsCert, tlsKey, tokenFile } = settings;
  const refuse = (name: Name, message: string): never => {
    throw badSetting({ path: [name], message }, settings);
  };
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    refuse(tlsCert === undefined ? 'tlsCert' : 'tlsKey', 'a certificate and its key belong together');
  }
  if (loopback.test(host) || (tlsCert !== undefined && tokenFile !== undefined)) return;
  refuse('host', 'others can reach this address: it needs --tls-cert, --tls-key and --token-file');
}

function readFlags(argv: readonly string[]): Record<string, string | undefined> {
  const options = Object.fromEntries(Object.values(sources).map(({ flag }) => [flag, { type: 'string' as const }]));
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values;
  } catch (error) {
    throw new MillraceError('bad-setting', error instanceof Error ? error.message : String(error), { cause: error });
  }
}

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>;

function badSetting(issue: Issue | undefined, raw: Readonly<Record<string, unknown>>): MillraceError {
  const name = String(issue?.path[0]) as Name;
  const { flag, env } = sources[name];
  const given = raw[name];
  const value = typeof given === 'string' ? given : JSON.stringify(given ?? '');
  return new MillraceError(
    'bad-setting',
    `setting "${name}" is ${JSON.stringify(value)}: ${issue?.message}. Set --${flag} or ${env}.`,
    { details: { setting: name, value } },
  );
}
