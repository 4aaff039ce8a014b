import {
  CheckpointState,
  checkpointFiles,
  checkpointsOf,
  decodedToPlain,
  type StatefulOperator,
  type StoredCheckpoint,
  type StoredJobs,
} from '@millrace/inspect';
import { MillraceError } from '@millrace/kernel';
import type { JobRecord } from '@millrace/proto';
import { formatBytes, formatCount, formatTable, formatTime } from '../format.ts';
import type { Report } from '../output.ts';

/** What every command on stored jobs needs. */
export interface StorageContext {
  readonly jobs: StoredJobs;
  readonly report: Report;
}

export interface ReadOptions {
  /** Number of a checkpoint or name of a savepoint; default: the newest. */
  readonly checkpoint?: string | undefined;
  /** Names of states; default: all. */
  readonly states?: readonly string[] | undefined;
}

export interface ScanOptions extends ReadOptions {
  /** Only keys whose text begins with this. */
  readonly prefix?: string | undefined;
  readonly limit: number;
}

/** Work that is done sooner tells nothing of its progress. */
const quietMs = 2000;
const noteEveryMs = 5000;

/** Tells of the progress of long work; on standard error in JSON mode. */
export function progressOf(report: Report): (text: string) => void {
  let nextMs = performance.now() + quietMs;
  return (text) => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    if (!report.json) return report.live(text, {});
    nextMs = nowMs + noteEveryMs;
    report.note(text);
  };
}

/** Entries between two looks whether to tell of progress. */
const progressEvery = 1000;

/** `millrace state ls` */
export async function listJobs({ jobs, report }: StorageContext): Promise<void> {
  const rows: string[][] = [];
  for (const id of await jobs.list()) {
    const record = await jobs.findRecord(id);
    const newest = record && checkpointsOf(record).at(-1);
    const row = {
      id,
      job: record?.job ?? null,
      generation: record?.generation ?? null,
      finished: record?.finished ?? null,
      checkpoints: record?.checkpoints.length ?? 0,
      savepoints: record?.savepoints?.length ?? 0,
      newest: newest?.checkpoint ?? null,
      createdMs: newest?.createdMs ?? null,
    };
    if (report.json) report.say('', row);
    const state = record === undefined ? 'files only' : record.finished ? 'finished' : 'unfinished';
    const counts = [row.checkpoints, row.savepoints].map(String);
    rows.push([id, row.job ?? '', state, String(row.generation ?? ''), ...counts, formatTime(row.createdMs)]);
  }
  if (report.json) return;
  if (rows.length === 0) return report.say(`No job has state at ${jobs.dfs.uri}.`, {});
  const head = ['ID', 'JOB', 'STATE', 'GENERATION', 'CHECKPOINTS', 'SAVEPOINTS', 'NEWEST (UTC)'];
  report.say(formatTable([head, ...rows]), {});
}

/** `millrace state ls JOB` */
export async function listState(context: StorageContext, id: string, { checkpoint }: ReadOptions): Promise<void> {
  const { jobs, report } = context;
  const record = await jobs.record(id);
  const chosen = jobs.checkpoint(record, checkpoint);
  const state = await CheckpointState.open({ jobs, record, checkpoint: chosen });
  try {
    const operators: StatefulOperator[] = [];
    for (const operator of state.operators) operators.push(await state.describe(operator));
    const checkpoints = checkpointsOf(record);
    if (report.json) {
      for (const entry of checkpoints) report.say('', { event: 'checkpoint', id, ...entry });
      for (const operator of operators) {
        report.say('', { event: 'operator', id, checkpoint: chosen.checkpoint, ...operator });
      }
      return;
    }
    const heading = chosen.savepoint === undefined ? chosen.checkpoint : `${chosen.checkpoint} (${chosen.savepoint})`;
    report.say(`${checkpointTable(checkpoints)}\n\nState at checkpoint ${heading}:\n`, {});
    report.say(operators.length === 0 ? 'No operator has keyed state.' : operatorTable(operators), {});
  } finally {
    await state.close();
  }
}

function checkpointTable(checkpoints: readonly StoredCheckpoint[]): string {
  const rows = checkpoints.map((entry) => [
    String(entry.checkpoint),
    entry.savepoint ?? '',
    String(entry.generation),
    String(entry.parallelism),
    formatBytes(entry.bytesPut),
    formatBytes(entry.bytesLinked),
    formatTime(entry.createdMs),
    entry.last ? 'last' : '',
  ]);
  const head = ['CHECKPOINT', 'SAVEPOINT', 'GENERATION', 'PARALLELISM', 'PUT', 'LINKED', 'CREATED (UTC)', ''];
  return formatTable([head, ...rows]);
}

function operatorTable(operators: readonly StatefulOperator[]): string {
  const rows = operators.flatMap(({ operator, store, subtasks, bytesStored, entriesEstimate, states }) => {
    const first = [operator, store, String(subtasks), formatBytes(bytesStored), `~${formatCount(entriesEstimate)}`];
    const all = states.map(({ name, kind, formats }) => [name, kind, shorten(formats.at(-1) ?? '')]);
    const [head = ['', '', ''], ...rest] = all;
    return [[...first, ...head], ...rest.map((state) => ['', '', '', '', '', ...state])];
  });
  return formatTable([['OPERATOR', 'STORE', 'SUBTASKS', 'BYTES', 'ENTRIES', 'STATE', 'KIND', 'FORMAT'], ...rows]);
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** `millrace state get JOB OPERATOR KEY` */
export async function getState(
  context: StorageContext,
  { id, operator, key }: { readonly id: string; readonly operator: string; readonly key: string },
  options: ReadOptions,
): Promise<void> {
  await withState(context, id, options, async (state, checkpoint) => {
    let found = 0;
    for await (const entry of state.get(operator, key, { states: options.states })) {
      sayEntry(context.report, entry);
      found++;
    }
    if (found > 0) return;
    const message = `Nothing is stored for key ${key} in operator ${operator} at checkpoint ${checkpoint.checkpoint}.`;
    throw new MillraceError('state-key-absent', message, { details: { key, operator } });
  });
}

/** `millrace state scan JOB OPERATOR` */
export async function scanState(
  context: StorageContext,
  { id, operator }: { readonly id: string; readonly operator: string },
  options: ScanOptions,
): Promise<void> {
  const { report } = context;
  const progress = progressOf(report);
  await withState(context, id, options, async (state) => {
    let read = 0;
    let shown = 0;
    for await (const entry of state.scan(operator, { states: options.states })) {
      if (++read % progressEvery === 0) progress(`${formatCount(read)} entries read, ${shown} shown`);
      if (options.prefix !== undefined && !textOf(decodedToPlain(entry.key)).startsWith(options.prefix)) continue;
      if (shown === options.limit) {
        if (!report.json) report.note(`… and more: --limit ${options.limit} is reached.`);
        return;
      }
      sayEntry(report, entry);
      shown++;
    }
    if (shown === 0 && !report.json) report.note('No entry.');
  });
}

type Entry = CheckpointState extends { scan(...rest: never): AsyncGenerator<infer E> } ? E : never;

function sayEntry(report: Report, entry: Entry): void {
  const { state, kind, keyGroup, namespace, mapKey, expiresAtMs } = entry;
  const key = decodedToPlain(entry.key);
  const value = decodedToPlain(entry.value);
  const plain = {
    state,
    kind,
    key,
    ...(namespace === undefined ? {} : { window: namespace }),
    ...(mapKey === undefined ? {} : { mapKey: decodedToPlain(mapKey) }),
    value,
    ...(expiresAtMs === 0 ? {} : { expiresAtMs }),
    keyGroup,
  };
  const window = namespace === undefined ? '' : ` @${textOf(namespace)}`;
  const item = mapKey === undefined ? '' : `[${textOf(decodedToPlain(mapKey))}]`;
  report.say(`${textOf(key)}${window}  ${state}${item}  ${JSON.stringify(value)}`, plain);
}

/** A key as it can be typed back in. */
function textOf(plain: unknown): string {
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

async function withState(
  { jobs }: StorageContext,
  id: string,
  options: ReadOptions,
  work: (state: CheckpointState, checkpoint: StoredCheckpoint) => Promise<void>,
): Promise<void> {
  const record = await jobs.record(id);
  const checkpoint = jobs.checkpoint(record, options.checkpoint);
  const state = await CheckpointState.open({ jobs, record, checkpoint });
  try {
    await work(state, checkpoint);
  } finally {
    await state.close();
  }
}

/** `millrace state files JOB` */
export async function listFiles({ jobs, report }: StorageContext, id: string, options: ReadOptions): Promise<void> {
  const record: JobRecord = await jobs.record(id);
  const checkpoint = jobs.checkpoint(record, options.checkpoint);
  const files = await checkpointFiles(jobs, id, checkpoint);
  if (report.json) {
    for (const file of files) report.say('', { ...file });
    return;
  }
  const rows = files.map(({ path, sizeBytes, level, entries, parts, generation }) => [
    path,
    formatBytes(sizeBytes),
    level === undefined ? '' : `L${level}`,
    entries === undefined ? '' : formatCount(entries),
    String(generation ?? ''),
    parts.join(' '),
  ]);
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  report.say(formatTable([['FILE', 'BYTES', 'LEVEL', 'ENTRIES', 'GENERATION', 'USED BY'], ...rows]), {});
  report.say(`${files.length} files, ${formatBytes(bytes)}, of checkpoint ${checkpoint.checkpoint}`, {});
}
