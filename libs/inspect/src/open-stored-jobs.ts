import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, MillraceError, systemRandom as random } from '@millrace/kernel';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { StoredJobs } from './stored-jobs.ts';

export interface OpenedJobs {
  readonly jobs: StoredJobs;
  close(): Promise<void>;
}

/** Opens the file system that `uri` names, as the setting `MILLRACE_STATE` does. A directory has to be there. */
export async function openStoredJobs(uri: string): Promise<OpenedJobs> {
  const directory = directoryOf(uri);
  if (directory !== undefined) {
    const found = await stat(directory).catch(() => undefined);
    if (found?.isDirectory() !== true) {
      const message = `There is no state at ${directory}: name the data directory of the stack (--data) or the file system (--dfs).`;
      throw new MillraceError('bad-setting', message, { details: { setting: 'dfs', value: uri } });
    }
  }
  const dfs = await openDfs(uri, { clock, random, telemetry });
  return { jobs: new StoredJobs({ dfs, clock, random }), close: () => dfs.close() };
}

/** Of a plain path or a well-formed file URI; others are for the file system to judge. */
function directoryOf(uri: string): string | undefined {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(uri)) return uri === '' ? undefined : resolve(uri);
  const url = /^file:\/\//i.test(uri) && URL.canParse(uri) ? new URL(uri) : undefined;
  if (url === undefined || url.host !== '') return undefined;
  url.search = '';
  return fileURLToPath(url);
}
