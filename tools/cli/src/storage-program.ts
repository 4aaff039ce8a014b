import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openStoredJobs } from '@millrace/inspect';
import type { Command } from 'commander';
import { diskUsage, listFileSystem, verifyFileSystem } from './commands/fs.ts';
import { getState, listFiles, listJobs, listState, type StorageContext, scanState } from './commands/state.ts';
import { createReport } from './output.ts';
import { defaultDataDir, parseCount } from './settings.ts';

interface StorageFlags {
  readonly json?: boolean;
  readonly data: string;
  readonly dfs?: string;
}

interface ReadFlags extends StorageFlags {
  readonly checkpoint?: string;
  readonly state?: readonly string[];
}

const collect = (value: string, previous: readonly string[] | undefined): string[] => [...(previous ?? []), value];

function storage(command: Command): Command {
  return command
    .option('--json', 'one JSON object a line on standard output')
    .option('--data <dir>', 'data directory of the embedded stack (or MILLRACE_DATA)', defaultDataDir(process.env))
    .option(
      '--dfs <uri>',
      'file system with the state: file:///…, s3://…, hdfs://… (or MILLRACE_STATE); default: that of --data',
    );
}

function reading(command: Command): Command {
  return storage(command).option(
    '--checkpoint <n>',
    'number of a checkpoint or name of a savepoint; default: the newest',
  );
}

function states(command: Command): Command {
  return command.option(
    '--state <name>',
    'only this state; may be repeated; event-timers and processing-timers are states, too',
    collect,
  );
}

/** Where the state lies: what the flag says, else the environment, else the embedded stack's directory. */
export function stateUri(flags: Pick<StorageFlags, 'data' | 'dfs'>, env: NodeJS.ProcessEnv): string {
  const named = flags.dfs ?? env.MILLRACE_STATE;
  return named === undefined || named === '' ? pathToFileURL(join(resolve(flags.data), 'state')).href : named;
}

async function withStorage(flags: StorageFlags, work: (context: StorageContext) => Promise<void>): Promise<void> {
  // Whoever reads the output (`head`) may have seen enough.
  process.stdout.once('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const opened = await openStoredJobs(stateUri(flags, process.env));
  try {
    await work({ jobs: opened.jobs, report: createReport(flags.json === true) });
  } finally {
    await opened.close();
  }
}

/** `millrace state` and `millrace fs`: what jobs have stored, read without them. */
export function addStorage(program: Command): void {
  addState(
    program.command('state').description('Read the state of checkpoints, without the job and without a cluster.'),
  );
  addFs(
    program.command('fs').description('Look at the files that jobs keep, who holds them, and whether they are sound.'),
  );
}

function addState(command: Command): void {
  reading(command.command('ls [job]'))
    .description('List the jobs that have state; of one job its checkpoints, operators and states.')
    .action((job: string | undefined, flags: ReadFlags) =>
      withStorage(flags, (context) => (job === undefined ? listJobs(context) : listState(context, job, flags))),
    );
  states(reading(command.command('get <job> <operator> <key>')))
    .description('Show what is stored for a key. The key is JSON ("42" is a text, 42 a number) or plain text.')
    .action((id: string, operator: string, key: string, flags: ReadFlags) =>
      withStorage(flags, (context) => getState(context, { id, operator, key }, { ...flags, states: flags.state })),
    );
  states(reading(command.command('scan <job> <operator>')))
    .description('Show what is stored for all keys, by key group. Reads everything up to the limit.')
    .option('--prefix <text>', 'only keys whose text begins so')
    .option('--limit <n>', 'entries to show', parseCount('limit', 1), 100)
    .action((id: string, operator: string, flags: ReadFlags & { limit: number; prefix?: string }) =>
      withStorage(flags, (context) => scanState(context, { id, operator }, { ...flags, states: flags.state })),
    );
  reading(command.command('files <job>'))
    .description('List the files of a checkpoint: size, level, entries, and which subtasks use them.')
    .action((id: string, flags: ReadFlags) => withStorage(flags, (context) => listFiles(context, id, flags)));
}

function addFs(command: Command): void {
  storage(command.command('ls [job]'))
    .description(
      'List physical files with their holders (checkpoints, savepoints, forks), and the holders with their logical size.',
    )
    .option('--orphans', 'only files that the next sweep deletes')
    .action((job: string | undefined, flags: StorageFlags & { orphans?: boolean }) =>
      withStorage(flags, (context) => listFileSystem(context, job, { orphans: flags.orphans === true })),
    );
  storage(command.command('du [job]'))
    .description(
      'Bytes of each job: physical, held, waiting for a sweep, orphans; logical is the sum over all holders.',
    )
    .action((job: string | undefined, flags: StorageFlags) => withStorage(flags, (context) => diskUsage(context, job)));
  storage(command.command('verify [job]'))
    .description('Check every checksum of every live file, holder and record. Exit code 2 when something is wrong.')
    .option('--deep', 'also read every entry, so that each block is checked by itself')
    .action((job: string | undefined, flags: StorageFlags & { deep?: boolean }) =>
      withStorage(flags, (context) => verifyFileSystem(context, job, { deep: flags.deep === true })),
    );
}
