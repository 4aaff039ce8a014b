import { MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileStore } from '@millrace/ufs';
import { buildMerge } from '../background/build-tables.ts';
import type { TableInfoJson } from '../manifest/table-json.ts';
import { type MergeJson, mergeFromJson, tablesToJson } from './merge-json.ts';

export interface CompactOptions {
  /** Inputs are read from here, and the output is made here. */
  readonly files: FileStore;
  /** Gives up: what was made is removed again. */
  readonly signal: AbortSignal;
  readonly parent?: TraceContext | undefined;
}

/** Does a merge on behalf of the owner of a table. What it makes has no holder: publishing is the owner's. */
export async function compact(json: MergeJson, { files, signal, parent }: CompactOptions): Promise<TableInfoJson[]> {
  const yieldTurn = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    if (signal.aborted) throw new MillraceError('cancelled', 'the compaction was given up');
  };
  await yieldTurn();
  const tables = await buildMerge(mergeFromJson(json), files, { parent, yieldTurn });
  if (!signal.aborted) return tablesToJson(tables);
  files.discard(tables.map((table) => table.file));
  throw new MillraceError('cancelled', 'the compaction was given up');
}
