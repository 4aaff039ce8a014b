import { resolve } from 'node:path';
import {
  type CheckpointMode,
  type CompactionPlace,
  checkpointModes,
  compactionPlaces,
  type JobInput,
} from '@millrace/proto/control';
import { type Command, Option } from 'commander';
import { dev, type EmbeddedOptions } from './commands/dev.ts';
import { cancel, checkpoint, jobs, status } from './commands/inspect.ts';
import { run } from './commands/run.ts';
import { addOperations } from './operations-program.ts';
import { createReport } from './output.ts';
import {
  type ClusterLocation,
  defaultDataDir,
  locateCluster,
  parseCount,
  parseJobOptions,
  requireCluster,
} from './settings.ts';
import { addStorage } from './storage-program.ts';

interface CommonFlags {
  readonly json?: boolean;
  readonly data: string;
}

interface StackFlags extends CommonFlags {
  readonly runners: number;
  readonly compactors: number;
  readonly slots: number;
  readonly state: string;
  readonly stateServices: number;
  readonly dfs?: string;
  readonly temporalPort: number;
  readonly uiPort: number;
  readonly consolePort: number;
}

interface JobFlags {
  readonly id?: string;
  readonly parallelism?: number;
  readonly checkpointInterval?: number;
  readonly checkpointMode?: CheckpointMode;
  readonly alignTimeout?: number;
  readonly compaction?: CompactionPlace;
  readonly option: readonly string[];
  readonly output?: string;
  readonly overwrite?: boolean;
  readonly from?: 'latest' | 'empty';
  readonly allowDroppedState?: boolean;
}

const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

function common(command: Command): Command {
  return command
    .option('--json', 'one JSON object a line on standard output')
    .option('--data <dir>', 'data directory of the embedded stack (or MILLRACE_DATA)', defaultDataDir(process.env));
}

function stackFlags(command: Command, ports: { temporal: number; ui: number; console: number }): Command {
  return common(command)
    .option('--runners <n>', 'task-runner processes', parseCount('runners', 1), 1)
    .option('--compactors <n>', 'processes that merge state files for the task-runners', parseCount('compactors', 0), 0)
    .option('--slots <n>', 'slots of each task-runner', parseCount('slots', 1), 2)
    .addOption(
      new Option(
        '--state <backend>',
        'where state lives: lsm (embedded, on the file system of --dfs), memory, or in a state-service: kv, cql, a package, a path beginning with ./',
      )
        .env('MILLRACE_STATE_BACKEND')
        .default('lsm'),
    )
    .addOption(
      new Option(
        '--dfs <uri>',
        'file system that holds all state: file:///…, s3://…, hdfs://…; default: a directory of --data',
      ).env('MILLRACE_STATE'),
    )
    .option(
      '--state-services <n>',
      'state-service processes, for --state other than lsm and memory',
      parseCount('state-services', 1),
      1,
    )
    .option(
      '--temporal-port <port>',
      'port of the Temporal server, 0 = any',
      parseCount('temporal-port', 0),
      ports.temporal,
    )
    .option('--ui-port <port>', 'port of the Temporal Web UI, 0 = any', parseCount('ui-port', 0), ports.ui)
    .option('--console-port <port>', 'port of the console, 0 = any', parseCount('console-port', 0), ports.console);
}

function jobFlags(command: Command): Command {
  return command
    .option('--id <id>', 'identity of the job and its state; default: its name')
    .option(
      '--parallelism <n>',
      'default: every slot of the embedded stack, 1 on a cluster',
      parseCount('parallelism', 1),
    )
    .option('--checkpoint-interval <ms>', 'milliseconds between checkpoints', parseCount('checkpoint-interval', 100))
    .addOption(
      new Option('--checkpoint-mode <mode>', 'what barriers do that meet records before them').choices(checkpointModes),
    )
    .option('--align-timeout <ms>', 'wait of a barrier in the mode aligned-timeout', parseCount('align-timeout', 1))
    .addOption(
      new Option('--compaction <place>', 'where state files are merged: in the runners or by compactors').choices(
        compactionPlaces,
      ),
    )
    .option('--output <dir>', 'where the job writes its results: its option `output`')
    .option('--overwrite', "replace what an earlier run wrote there: the job's option `overwrite`")
    .option('--option <name=value>', 'an option of the job, value as JSON or text; may be repeated', collect, [])
    .option('--from <where>', 'latest: resume an unfinished run; empty: begin anew')
    .option('--allow-dropped-state', 'resume also when operators with state have come or gone, and drop what is left');
}

function embedded(flags: StackFlags): EmbeddedOptions {
  return {
    dataDir: resolve(flags.data),
    runners: flags.runners,
    compactors: flags.compactors,
    slotsPerRunner: flags.slots,
    stateBackend: flags.state,
    stateServices: flags.stateServices,
    ...(flags.dfs === undefined || flags.dfs === '' ? {} : { dfs: flags.dfs }),
    temporalPort: flags.temporalPort,
    uiPort: flags.uiPort,
    consolePort: flags.consolePort,
    report: createReport(flags.json === true),
  };
}

function jobInput(job: string, flags: JobFlags, parallelism: number): JobInput {
  return {
    job,
    parallelism: flags.parallelism ?? parallelism,
    ...(flags.id === undefined ? {} : { id: flags.id }),
    ...(flags.checkpointInterval === undefined ? {} : { checkpointIntervalMs: flags.checkpointInterval }),
    ...(flags.checkpointMode === undefined ? {} : { checkpointMode: flags.checkpointMode }),
    ...(flags.alignTimeout === undefined ? {} : { alignTimeoutMs: flags.alignTimeout }),
    ...(flags.compaction === undefined ? {} : { compaction: flags.compaction }),
    ...(flags.from === undefined ? {} : { from: flags.from }),
    ...(flags.allowDroppedState === true ? { allowDroppedState: true } : {}),
    options: {
      ...parseJobOptions(flags.option),
      ...(flags.output === undefined ? {} : { output: resolve(flags.output) }),
      ...(flags.overwrite === true ? { overwrite: true } : {}),
    },
  };
}

/** The command line of `millrace`. */
export function createProgram(program: Command): Command {
  program
    .name('millrace')
    .description('Stream processing for TypeScript with state on a distributed file system.')
    .version('0.1.0')
    .showHelpAfterError()
    .exitOverride();
  addDev(program);
  addRun(program);
  addInspection(program);
  addOperations(program);
  addStorage(program);
  return program;
}

function addDev(program: Command): void {
  const command = stackFlags(program.command('dev'), { temporal: 7233, ui: 8233, console: 8080 });
  jobFlags(command)
    .description('Bring up the embedded stack (Temporal server, control plane, task-runners), and run a job on it.')
    .option('--job <name>', 'job to run')
    .option('--keep', 'leave the stack up when the job has ended; default on a terminal')
    .option('--no-keep', 'stop the stack when the job has ended')
    .option('--reset', 'forget state, database and logs of earlier runs first')
    .action(async (flags: StackFlags & JobFlags & { job?: string; keep?: boolean; reset?: boolean }) => {
      const options = { ...embedded(flags), reset: flags.reset === true };
      const input = flags.job === undefined ? undefined : jobInput(flags.job, flags, flags.runners * flags.slots);
      await dev(options, input, flags.keep ?? (process.stdout.isTTY === true && flags.json !== true));
    });
}

function addRun(program: Command): void {
  const command = stackFlags(program.command('run <job>'), { temporal: 0, ui: 0, console: 0 });
  jobFlags(command)
    .description(
      'Run a job to its end: on the cluster of MILLRACE_TEMPORAL_ADDRESS or the embedded stack that runs on --data, else on a stack of its own.',
    )
    .action(async (job: string, flags: StackFlags & JobFlags) => {
      const cluster = locateCluster(process.env, resolve(flags.data));
      const parallelism = cluster === undefined ? flags.runners * flags.slots : 1;
      await run(jobInput(job, flags, parallelism), cluster, embedded(flags));
    });
}

function addInspection(program: Command): void {
  const cluster = (flags: CommonFlags): ClusterLocation => requireCluster(process.env, resolve(flags.data));
  const report = (flags: CommonFlags) => createReport(flags.json === true);
  common(program.command('jobs'))
    .description('List the jobs of the cluster.')
    .action((flags: CommonFlags) => jobs(cluster(flags), report(flags)));
  common(program.command('status <id>'))
    .description('Show a job: state, generation, newest checkpoint rounds.')
    .action((id: string, flags: CommonFlags) => status(cluster(flags), id, report(flags)));
  common(program.command('checkpoint <id>'))
    .description('Take a checkpoint now and wait until it is registered.')
    .action((id: string, flags: CommonFlags) => checkpoint(cluster(flags), id, report(flags)));
  common(program.command('cancel <id>'))
    .description('Stop a job without a last checkpoint. What was registered stays.')
    .action((id: string, flags: CommonFlags) => cancel(cluster(flags), id, report(flags)));
}
