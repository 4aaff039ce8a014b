import { MillraceError } from '@millrace/kernel';
import { type CheckpointMode, checkpointModes } from '@millrace/proto/control';
import { z } from 'zod';

const port = z.coerce.number().int().min(0).max(65_535);

const schema = z.object({
  MILLRACE_TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^:\s]+:\d+$/, 'use host:port')
    .default('127.0.0.1:7233'),
  MILLRACE_NAMESPACE: z.string().min(1).default('default'),
  MILLRACE_STATE: z.string().min(1, 'name the place of the state, for example file:///var/lib/millrace'),
  MILLRACE_CONSOLE_HOST: z.string().min(1).default('127.0.0.1'),
  MILLRACE_CONSOLE_PORT: port.default(8080),
  MILLRACE_CHECKPOINT_MODE: z.enum(checkpointModes).default('aligned'),
  MILLRACE_FAILPOINT: z.string().default(''),
});

/** What a control-plane process is told by its environment. */
export interface ControlSettings {
  readonly temporalAddress: string;
  readonly namespace: string;
  /** URI of the DFS that holds all state. */
  readonly state: string;
  readonly consoleHost: string;
  /** 0 = any free port. */
  readonly consolePort: number;
  /** Of jobs whose input names none. */
  readonly checkpointMode: CheckpointMode;
  readonly failPoint: string;
}

/** Settings from the environment; rejects the first that cannot be used, naming it. */
export function controlSettings(env: Readonly<Record<string, string | undefined>>): ControlSettings {
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0]);
    throw new MillraceError('bad-setting', `${name}=${env[name] ?? ''}: ${issue?.message}.`, {
      details: { setting: name },
    });
  }
  const values = parsed.data;
  return Object.freeze({
    temporalAddress: values.MILLRACE_TEMPORAL_ADDRESS,
    namespace: values.MILLRACE_NAMESPACE,
    state: values.MILLRACE_STATE,
    consoleHost: values.MILLRACE_CONSOLE_HOST,
    consolePort: values.MILLRACE_CONSOLE_PORT,
    checkpointMode: values.MILLRACE_CHECKPOINT_MODE,
    failPoint: values.MILLRACE_FAILPOINT,
  });
}
