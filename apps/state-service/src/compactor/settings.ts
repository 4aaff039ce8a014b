import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MillraceError } from '@millrace/kernel';
import { z } from 'zod';

const integer = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

const schema = z.object({
  temporalAddress: z.string().regex(/^[^\s:]+:\d{1,5}$/, 'write host:port'),
  namespace: z.string().min(1),
  state: z.string().min(1),
  concurrency: integer(1, 64),
  /** Empty: no metrics endpoint. */
  metricsPort: z.union([z.literal('').transform(() => undefined), integer(0, 65_535)]),
});

/** A compactor's settings, checked and frozen. */
export type CompactorSettings = Readonly<z.output<typeof schema>>;

/** Where each setting comes from: flag, then environment, then default. */
const sources = {
  temporalAddress: {
    flag: 'temporal-address',
    env: 'MILLRACE_TEMPORAL_ADDRESS',
    fallback: '127.0.0.1:7233',
    help: "host:port of Temporal's frontend",
  },
  namespace: { flag: 'namespace', env: 'MILLRACE_NAMESPACE', fallback: 'default', help: 'Temporal namespace' },
  state: {
    flag: 'state',
    env: 'MILLRACE_STATE',
    fallback: resolve('.millrace/state'),
    help: 'where state lives: that of the task-runners',
  },
  concurrency: {
    flag: 'concurrency',
    env: 'MILLRACE_COMPACTOR_CONCURRENCY',
    fallback: '2',
    help: 'compactions at once; they share one processor',
  },
  metricsPort: {
    flag: 'metrics-port',
    env: 'MILLRACE_METRICS_PORT',
    fallback: '',
    help: 'serves /metrics there; 0: any',
  },
} as const satisfies Record<keyof CompactorSettings, { flag: string; env: string; fallback: string; help: string }>;

type Name = keyof typeof sources;

/** The text of `--role compactor --help`. */
export function compactorHelp(): string {
  const rows = Object.values(sources).map(({ flag, env, fallback, help }) => {
    return `  --${flag.padEnd(17)} ${help} (${env}; default ${fallback})`;
  });
  return ['state-service --role compactor: merges state files for task-runners', '', ...rows].join('\n');
}

/** Reads flags and environment. Throws `bad-setting`, which names the setting and what is allowed. */
export function readCompactorSettings(argv: readonly string[], env: NodeJS.ProcessEnv): CompactorSettings {
  const flags = readFlags(argv);
  const raw = Object.fromEntries(
    (Object.keys(sources) as Name[]).map((name) => {
      const { flag, env: variable, fallback } = sources[name];
      const given = flags[flag] ?? env[variable];
      return [name, given === undefined || given === '' ? fallback : given];
    }),
  );
  const parsed = schema.safeParse(raw);
  if (parsed.success) return Object.freeze(parsed.data);
  const issue = parsed.error.issues[0];
  const name = String(issue?.path[0]) as Name;
  const { flag, env: variable } = sources[name];
  const value = String(raw[name]);
  const text = `setting "${name}" is ${JSON.stringify(value)}: ${issue?.message}. Set --${flag} or ${variable}.`;
  throw new MillraceError('bad-setting', text, { details: { setting: name, value } });
}

function readFlags(argv: readonly string[]): Record<string, string | undefined> {
  const options = Object.fromEntries(Object.values(sources).map(({ flag }) => [flag, { type: 'string' as const }]));
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values;
  } catch (error) {
    throw new MillraceError('bad-setting', error instanceof Error ? error.message : String(error), { cause: error });
  }
}
