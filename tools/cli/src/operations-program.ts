import { resolve } from 'node:path';
import { type CleanupResult, type RestoreResult, type StopMode, stopModes } from '@millrace/proto/control';
import { type Command, Option } from 'commander';
import { checkpoints, operate } from './commands/operate.ts';
import { formatBytes } from './format.ts';
import { createReport, type Report } from './output.ts';
import { type ClusterLocation, defaultDataDir, parseCount, parseJobOptions, requireCluster } from './settings.ts';

interface Flags {
  readonly json?: boolean;
  readonly data: string;
}

interface StartFlags extends Flags {
  readonly from?: number | string;
  readonly parallelism?: number;
  readonly option: readonly string[];
  readonly allowDroppedState?: boolean;
}

const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

function common(command: Command): Command {
  return command
    .option('--json', 'one JSON object a line on standard output')
    .option('--data <dir>', 'data directory of the embedded stack (or MILLRACE_DATA)', defaultDataDir(process.env));
}

function starting(command: Command): Command {
  return common(command)
    .option('--from <checkpoint>', 'number of a checkpoint or name of a savepoint; default: the newest', parseFrom)
    .option('--parallelism <n>', 'default: as in the last run', parseCount('parallelism', 1))
    .option('--option <name=value>', 'another value of an option of the job; may be repeated', collect, [])
    .option('--allow-dropped-state', 'also when operators with state have come or gone, and drop what is left');
}

function parseFrom(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function where(flags: Flags): readonly [ClusterLocation, Report] {
  return [requireCluster(process.env, resolve(flags.data)), createReport(flags.json === true)];
}

function startFields(flags: StartFlags) {
  const options = parseJobOptions(flags.option);
  return {
    ...(flags.from === undefined ? {} : { from: flags.from }),
    ...(flags.parallelism === undefined ? {} : { parallelism: flags.parallelism }),
    ...(flags.option.length === 0 ? {} : { options }),
    ...(flags.allowDroppedState === true ? { allowDroppedState: true } : {}),
  };
}

/** Commands that do something to a job; each is a workflow. */
export function addOperations(program: Command): void {
  addChanges(program);
  addStarts(program);
  addEnds(program);
}

function addChanges(program: Command): void {
  common(program.command('rescale <id>'))
    .description('Change the parallelism of a running job: stop with a checkpoint, start again, or roll back.')
    .requiredOption('--parallelism <n>', 'subtasks to run', parseCount('parallelism', 0))
    .option('--timeout <ms>', 'wait for free slots, and for the new attempt', parseCount('timeout', 1000))
    .action(async (job: string, flags: Flags & { parallelism: number; timeout?: number }) => {
      const [cluster, report] = where(flags);
      const { parallelism, timeout } = flags;
      const input = { job, parallelism, ...(timeout === undefined ? {} : { timeoutMs: timeout }) };
      await operate(
        cluster,
        {
          start: (client) => client.rescale(input),
          done: ({ from, to, downtimeMs }) =>
            `job ${job}: parallelism ${from} → ${to}${downtimeMs === null ? '' : `, ${downtimeMs} ms without records`}`,
        },
        report,
      );
    });
  common(program.command('savepoint <id>'))
    .description('Take a checkpoint that is kept until it is released.')
    .option('--name <name>', 'default: savepoint-<number of the checkpoint>')
    .action(async (job: string, flags: Flags & { name?: string }) => {
      const [cluster, report] = where(flags);
      const input = { job, ...(flags.name === undefined ? {} : { name: flags.name }) };
      const done = ({ name, checkpoint }: { name: string; checkpoint: number }): string =>
        `job ${job}: savepoint ${name}, checkpoint ${checkpoint}`;
      await operate(cluster, { start: (client) => client.savepoint(input), done }, report);
    });
  common(program.command('stop <id>'))
    .description('End a job with a last checkpoint. `restore` goes on from there.')
    .addOption(
      new Option('--mode <mode>', 'suspend: to go on later; drain: end the inputs, fire every window, finish')
        .choices(stopModes)
        .default('suspend'),
    )
    .option('--savepoint <name>', 'make the last checkpoint a savepoint')
    .action(async (job: string, flags: Flags & { mode: StopMode; savepoint?: string }) => {
      const [cluster, report] = where(flags);
      const { mode, savepoint } = flags;
      const input = { job, mode, ...(savepoint === undefined ? {} : { savepoint }) };
      const done = ({ checkpoint }: { checkpoint: number | null }): string =>
        `job ${job}: ${mode === 'drain' ? 'drained and finished' : 'stopped'}, checkpoint ${checkpoint}`;
      await operate(cluster, { start: (client) => client.stop(input), done }, report);
    });
}

function addStarts(program: Command): void {
  const done = ({ id, checkpoint, parallelism, bytesLinked }: RestoreResult): string =>
    `job ${id}: runs at parallelism ${parallelism} from checkpoint ${checkpoint}${bytesLinked === undefined ? '' : `, ${formatBytes(bytesLinked)} of state shared`}`;
  starting(program.command('restore <id>'))
    .description('Have a job go on from a checkpoint or savepoint of its own; it is ended first when it runs.')
    .option('--claim', "the savepoint becomes one of the job's checkpoints, to be dropped in its turn")
    .action(async (job: string, flags: StartFlags & { claim?: boolean }) => {
      const [cluster, report] = where(flags);
      const input = { job, ...startFields(flags), ...(flags.claim === true ? { claim: true } : {}) };
      await operate(cluster, { start: (client) => client.restore(input), done }, report);
    });
  starting(program.command('fork <id> <new-id>'))
    .description('Start a new job from a checkpoint of another, which goes on. No state is copied.')
    .action(async (job: string, id: string, flags: StartFlags) => {
      const [cluster, report] = where(flags);
      await operate(cluster, { start: (client) => client.fork({ job, id, ...startFields(flags) }), done }, report);
    });
}

function addEnds(program: Command): void {
  const done = ({ id, filesRemoved, bytesFreed, filesPinned }: CleanupResult): string =>
    `job ${id}: ${formatBytes(bytesFreed)} freed, ${filesRemoved} file(s) removed${filesPinned === 0 ? '' : `, ${filesPinned} kept for forks`}`;
  common(program.command('checkpoints <id>'))
    .description('List the checkpoints and savepoints that a job can be restored or forked from.')
    .action(async (job: string, flags: Flags) => {
      const [cluster, report] = where(flags);
      await checkpoints(cluster, job, report);
    });
  common(program.command('release <id> <savepoint>'))
    .description('Give a savepoint up.')
    .action(async (job: string, savepoint: string, flags: Flags) => {
      const [cluster, report] = where(flags);
      await operate(cluster, { start: (client) => client.release({ job, savepoint }), done }, report);
    });
  common(program.command('cleanup <id>'))
    .description('Delete now what a job needs no longer: dropped checkpoints, what failed rounds and attempts left.')
    .option('--grace <ms>', 'leave younger objects alone; default: an hour', parseCount('grace', 0))
    .action(async (job: string, flags: Flags & { grace?: number }) => {
      const [cluster, report] = where(flags);
      const input = { job, ...(flags.grace === undefined ? {} : { graceMs: flags.grace }) };
      await operate(cluster, { start: (client) => client.cleanup(input), done }, report);
    });
  common(program.command('delete <id>'))
    .description('Delete a job that does not run, with all that it holds. What forks of it hold stays.')
    .option('--savepoints', 'also when it has savepoints, with them')
    .action(async (job: string, flags: Flags & { savepoints?: boolean }) => {
      const [cluster, report] = where(flags);
      const input = { job, ...(flags.savepoints === true ? { savepoints: true } : {}) };
      await operate(cluster, { start: (client) => client.deleteJob(input), done }, report);
    });
}
