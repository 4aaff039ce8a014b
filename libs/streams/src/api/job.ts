import { MillraceError } from '@millrace/kernel';
import type { Flow } from './flow.ts';
import type { SchemaOutput, StandardSchema } from './standard-schema.ts';

/** What a job's options are before its schema has seen them: plain JSON, as typed into a form or a command line. */
export type OptionsJson = { readonly [name: string]: unknown };

/** A job as its module exports it. Holds no state: each slot builds the graph anew. */
export interface Job {
  readonly name: string;
  readonly options: StandardSchema | undefined;
  readonly build: (flow: Flow, options: never) => void;
}

const mark: unique symbol = Symbol.for('millrace.job');

/** Job names are parts of paths, metrics and workflow ids. */
const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/**
 * Defines a job. `build` describes the streams; it runs once in every slot and must build the same graph each time.
 * ```
 * export default job('flights', { options: z.object({ output: z.string() }) }, (flow, options) => { … });
 * ```
 */
export function job(name: string, build: (flow: Flow) => void): Job;
export function job<S extends StandardSchema>(
  name: string,
  spec: { readonly options: S },
  build: (flow: Flow, options: SchemaOutput<S>) => void,
): Job;
export function job(
  name: string,
  specOrBuild: { readonly options?: StandardSchema } | Job['build'],
  build?: Job['build'],
): Job {
  if (!namePattern.test(name)) {
    throw new MillraceError('bad-argument', `job name ${JSON.stringify(name)} must match ${String(namePattern)}`);
  }
  const spec = typeof specOrBuild === 'function' ? {} : specOrBuild;
  const run = typeof specOrBuild === 'function' ? specOrBuild : build;
  if (run === undefined) throw new MillraceError('bad-argument', `job ${name} has no function that builds its streams`);
  return Object.freeze({ name, options: spec.options, build: run, [mark]: true });
}

/** The job that a module exports as its default; `job-module` when there is none. */
export function loadJob(module: unknown, where = 'the module'): Job {
  const candidate = (module as { readonly default?: unknown } | null | undefined)?.default;
  if (typeof candidate === 'object' && candidate !== null && mark in candidate) return candidate as unknown as Job;
  throw new MillraceError('job-module', `${where} does not export a job as its default export`);
}
