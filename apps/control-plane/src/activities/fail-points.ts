import { MillraceError } from '@millrace/kernel';

/** Called between two durable steps; tests make it fail, hang or end the process there. */
export type FailPoint = (name: FailPointName) => Promise<void>;

/** Every fail point, in the order of a job's life. */
export const failPointNames = [
  'claim.after-commit',
  'barrier.before-record',
  'barrier.before-inject',
  'barrier.after-inject',
  'drain.before-write',
  'drain.after-write',
  'link.before-hold',
  'link.after-hold',
  'register.before-commit',
  'register.after-commit',
  'register.after-complete',
  'abort.after-close',
  'finish.after-commit',
  'fork.after-record',
  'delete.after-record',
] as const;
export type FailPointName = (typeof failPointNames)[number];

export const noFailPoints: FailPoint = () => Promise.resolve();

/**
 * Fail points from a setting `name:mode`, modes: `crash` (the process ends at once, as by kill -9), `error` (each time),
 * `hang`. An empty setting is none.
 */
export function failPointsFrom(setting: string | undefined, crash: () => never): FailPoint {
  if (setting === undefined || setting === '') return noFailPoints;
  const [name, mode] = setting.split(':');
  if (!failPointNames.some((known) => known === name) || !['crash', 'error', 'hang'].includes(mode ?? '')) {
    throw new MillraceError(
      'bad-setting',
      `MILLRACE_FAILPOINT=${setting}: use name:mode with mode crash, error or hang, and a name of ${failPointNames.join(', ')}.`,
    );
  }
  return async (reached) => {
    if (reached !== name) return;
    if (mode === 'crash') crash();
    if (mode === 'error') throw new MillraceError('unexpected', `fail point ${reached}`);
    await new Promise(() => undefined);
  };
}
