/** The work of the background: pure CPU between reads and writes of immutable files. */
import { BlockCache } from '@millrace/cache';
import { isPending } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { FileStore } from '@millrace/ufs';
import {
  entryWords,
  expiryIndex,
  expiryStride,
  hashWord,
  keyLengthWord,
  keyStartWord,
  tombstone,
  valueLengthWord,
  valueStartWord,
} from '../memtable/entry-layout.ts';
import { keyHash } from '../memtable/memtable.ts';
import { sortEntries } from '../memtable/sort-entries.ts';
import { newestOnly } from '../memtable/sorted-runs.ts';
import { MergeCursor } from '../merge/merge-cursor.ts';
import { RunCursor } from '../merge/run-cursor.ts';
import { ReadBuffer } from '../sst/read-buffer.ts';
import { compactionReadAhead, SstCursor } from '../sst/sst-cursor.ts';
import { SstReader } from '../sst/sst-reader.ts';
import type { TableInfo } from '../sst/table-info.ts';
import { TableSink } from '../sst/table-sink.ts';
import type { FlushTask, MergeInput, MergeTask } from './executor.ts';

/** Entries of a merge between two turns of the others: about a millisecond. */
const entriesPerTurn = 1024;

/** Entries of a memtable that are fetched into the processor's caches together. */
const touchedAtOnce = 64;
const lineBytes = 64;

export async function buildFlush(
  task: FlushTask,
  files: FileStore,
  parent?: TraceContext,
): Promise<readonly TableInfo[]> {
  const sink = new TableSink(files, task.options, parent);
  try {
    await writeEntries(task, sink);
    return await sink.finish();
  } catch (error) {
    await sink.abort();
    throw error;
  }
}

async function writeEntries({ content }: FlushTask, sink: TableSink): Promise<void> {
  const arena = new Uint8Array(content.arena);
  const words = new Int32Array(content.words);
  const expiry = new Float64Array(content.words);
  const sorted = sortEntries(arena, words, 0, content.count);
  const order = content.hasOldVersions ? newestOnly(arena, words, sorted) : sorted;
  for (let i = 0; i < order.length; i++) {
    if (i % touchedAtOnce === 0) touch(arena, words, order.subarray(i, i + touchedAtOnce));
    const entry = order[i] as number;
    const at = entry * entryWords;
    const keyStart = words[at + keyStartWord] as number;
    const valueStart = words[at + valueStartWord] as number;
    const length = words[at + valueLengthWord] as number;
    const isTombstone = length === tombstone;
    const written = sink.add(
      words[at + hashWord] as number,
      arena,
      keyStart,
      keyStart + (words[at + keyLengthWord] as number),
      valueStart,
      isTombstone ? valueStart : valueStart + length,
      isTombstone,
      expiry[entry * expiryStride + expiryIndex] as number,
    );
    if (isPending(written)) await written;
  }
}

/**
 * Reads a byte of each line of memory that the next entries lie in. They are far apart, and the processor fetches many
 * lines at a time where nothing is done in between; one by one, each entry would wait for its own.
 */
function touch(arena: Uint8Array, words: Int32Array, entries: Uint32Array): number {
  let sum = 0;
  for (let i = 0; i < entries.length; i++) sum ^= words[(entries[i] as number) * entryWords + keyStartWord] as number;
  for (let i = 0; i < entries.length; i++) {
    const at = (entries[i] as number) * entryWords;
    const valueStart = words[at + valueStartWord] as number;
    const valueEnd = valueStart + Math.max(0, words[at + valueLengthWord] as number);
    sum ^= arena[words[at + keyStartWord] as number] as number;
    for (let line = valueStart; line < valueEnd; line += lineBytes) sum ^= arena[line] as number;
  }
  return sum;
}

/** `yieldTurn` is awaited now and then, so that the thread can do other work. */
export async function buildMerge(
  task: MergeTask,
  files: FileStore,
  options: { readonly parent?: TraceContext | undefined; readonly yieldTurn: () => Promise<void> },
): Promise<readonly TableInfo[]> {
  const sink = new TableSink(files, task.options, options.parent);
  try {
    const merge = new MergeCursor(task.runs.map((run) => runCursor(run, files, options.parent)));
    await writeMerged(task, merge, { sink, yieldTurn: options.yieldTurn });
    return await sink.finish();
  } catch (error) {
    await sink.abort();
    throw error;
  }
}

interface MergeOutput {
  readonly sink: TableSink;
  readonly yieldTurn: () => Promise<void>;
}

/**
 * Keeps the newest version of each key. An expired one becomes a tombstone, so that it goes on hiding what is older,
 * until the bottom, where both are dropped.
 */
async function writeMerged(task: MergeTask, merge: MergeCursor, { sink, yieldTurn }: MergeOutput): Promise<void> {
  await merge.open();
  for (let count = 1; merge.valid; count++) {
    const at = merge.at;
    const isDead = at.isTombstone || (at.expiresAtMs !== 0 && at.expiresAtMs <= task.nowMs);
    if (!isDead || !task.isBottom) {
      const { bytes, keyStart, keyEnd } = at;
      const hash = keyHash(bytes, keyStart, keyEnd);
      const expiresAtMs = isDead ? 0 : at.expiresAtMs;
      const written = sink.add(hash, bytes, keyStart, keyEnd, at.valueStart, at.valueEnd, isDead, expiresAtMs);
      if (isPending(written)) await written;
    }
    const moved = merge.next();
    if (isPending(moved)) await moved;
    if (count % entriesPerTurn === 0) await yieldTurn();
  }
}

function runCursor(run: readonly MergeInput[], files: FileStore, parent: TraceContext | undefined): RunCursor {
  const noCache = new BlockCache({ bytesMax: 0 });
  const buffer = new ReadBuffer(compactionReadAhead.limitBytes);
  return new RunCursor(
    run.map(({ info, clip }) => () => {
      const reader = new SstReader(info, files, noCache);
      return new SstCursor(reader, { range: clip, readAhead: compactionReadAhead, buffer, parent });
    }),
  );
}
