import { resolve } from 'node:path';
import { MillraceError } from '@millrace/kernel';
import { runningStack } from './stack/stack-file.ts';

/** Where a command finds the cluster that it talks to. */
export interface ClusterLocation {
  readonly address: string;
  readonly namespace: string;
  /** The console of a control plane, for live figures; undefined when it is not known. */
  readonly console: string | undefined;
  readonly temporalUi: string | undefined;
}

export function defaultDataDir(env: NodeJS.ProcessEnv): string {
  return resolve(env.MILLRACE_DATA ?? '.millrace');
}

/**
 * The cluster of the environment (`MILLRACE_TEMPORAL_ADDRESS`), else the embedded stack that runs on `dataDir`,
 * else undefined.
 */
export function locateCluster(env: NodeJS.ProcessEnv, dataDir: string): ClusterLocation | undefined {
  const namespace = env.MILLRACE_NAMESPACE ?? 'default';
  const address = env.MILLRACE_TEMPORAL_ADDRESS;
  if (address !== undefined && address !== '') {
    return { address, namespace, console: env.MILLRACE_CONSOLE, temporalUi: env.MILLRACE_TEMPORAL_UI };
  }
  const stack = runningStack(dataDir);
  if (stack === undefined) return undefined;
  return { address: stack.temporalAddress, namespace, console: stack.console, temporalUi: stack.temporalUi };
}

/** As {@link locateCluster}; without a cluster it fails in words. */
export function requireCluster(env: NodeJS.ProcessEnv, dataDir: string): ClusterLocation {
  const location = locateCluster(env, dataDir);
  if (location !== undefined) return location;
  throw new MillraceError(
    'no-cluster',
    `No embedded stack runs on ${dataDir} and MILLRACE_TEMPORAL_ADDRESS is not set. Start one with \`millrace dev\`, name its directory with --data, or set MILLRACE_TEMPORAL_ADDRESS.`,
  );
}

/** `--option name=value` pairs as the job's options; values are JSON where they parse as such, else text. */
export function parseJobOptions(pairs: readonly string[]): Record<string, never> {
  const options: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at <= 0) {
      throw new MillraceError('bad-argument', `--option ${pair}: write it as name=value.`);
    }
    options[pair.slice(0, at)] = parseValue(pair.slice(at + 1));
  }
  return options as Record<string, never>;
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A whole number given to `--${name}`. */
export function parseCount(name: string, min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isSafeInteger(value) && value >= min) return value;
    throw new MillraceError('bad-argument', `--${name} ${text}: give a whole number of at least ${min}.`);
  };
}
