/** A merge as it travels to a compactor: files, ranges and parameters, a few hundred bytes for each table. */
import { compareBytes, MillraceError } from '@millrace/kernel';
import type { MergeTask } from '../background/executor.ts';
import {
  type ClipJson,
  clipFromJson,
  clipToJson,
  type TableInfoJson,
  tableFromJson,
  tableToJson,
} from '../manifest/table-json.ts';
import type { TableInfo, TableOptions } from '../sst/table-info.ts';

const mergeVersion = 1;

export interface MergeJson {
  readonly version: number;
  /** Newest first. */
  readonly runs: ReadonlyArray<ReadonlyArray<TableInfoJson & ClipJson>>;
  readonly isBottom: boolean;
  readonly nowMs: number;
  readonly options: TableOptions;
}

export function mergeToJson({ runs, isBottom, nowMs, options }: MergeTask): MergeJson {
  return {
    version: mergeVersion,
    runs: runs.map((run) => run.map(({ info, clip }) => ({ ...tableToJson(info), ...clipToJson(clip) }))),
    isBottom,
    nowMs,
    options,
  };
}

/** Rejects versions that this program does not know. */
export function mergeFromJson(json: MergeJson): MergeTask {
  if (json.version !== mergeVersion) {
    const message = `a compaction has version ${json.version}; this compactor does ${mergeVersion}`;
    throw new MillraceError('lsm-format', message, { details: { version: json.version } });
  }
  const { isBottom, nowMs, options } = json;
  return { runs: json.runs.map((run) => run.map(inputFromJson)), isBottom, nowMs, options };
}

function inputFromJson({ clipStart, clipEnd, ...info }: TableInfoJson & ClipJson): MergeTask['runs'][number][number] {
  return {
    info: tableFromJson(info),
    clip: clipFromJson({ clipStart, ...(clipEnd === undefined ? {} : { clipEnd }) }),
  };
}

export function tablesToJson(tables: readonly TableInfo[]): TableInfoJson[] {
  return tables.map(tableToJson);
}

/** The tables of an answer, checked to be one sorted run that may be the result of `task`. */
export function tablesFromJson(json: readonly TableInfoJson[], task: MergeTask): readonly TableInfo[] {
  const tables = json.map(tableFromJson);
  for (const [i, table] of tables.entries()) {
    const before = tables[i - 1];
    const isOrdered = before === undefined || compareBytes(before.last, table.first) < 0;
    if (!isOrdered || compareBytes(table.first, table.last) > 0) throw wrong('its tables are not in order');
  }
  const sum = (all: readonly TableInfo[]): number => all.reduce((total, { entries }) => total + entries, 0);
  if (sum(tables) > sum(task.runs.flat().map(({ info }) => info))) throw wrong('it has more entries than there were');
  return tables;
}

function wrong(what: string): MillraceError {
  return new MillraceError('compaction-failed', `the answer of a compactor cannot be right: ${what}`);
}
