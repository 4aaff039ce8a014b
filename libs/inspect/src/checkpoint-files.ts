import { type ManifestJson, manifestFromJson } from '@millrace/lsm';
import { type FileRef, fileOrigin, type Holder, Holders, JobNamespace } from '@millrace/ufs';
import { holdersOf } from './checkpoint-parts.ts';
import type { StoredCheckpoint, StoredJobs } from './stored-jobs.ts';

/** A file as a checkpoint names it. */
export interface CheckpointFile {
  readonly id: string;
  /** Whole path on the file system. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly crc32: number;
  /** Job in whose namespace it lies. */
  readonly home: string;
  /** Attempt that made it; undefined for a name that this program does not know. */
  readonly generation: number | undefined;
  readonly mintedMs: number | undefined;
  /** Parts of the checkpoint that name it: operator and subtask. */
  readonly parts: readonly string[];
  /** 0: flushed, not merged yet; undefined for what is no table. */
  readonly level: number | undefined;
  readonly entries: number | undefined;
}

/** Every file of a checkpoint, by path. Reads the holders and no file. */
export async function checkpointFiles(
  jobs: StoredJobs,
  jobId: string,
  checkpoint: StoredCheckpoint,
): Promise<CheckpointFile[]> {
  const holders = new Holders(jobs.dfs);
  const namespace = new JobNamespace(jobId);
  const files = new Map<string, CheckpointFile & { readonly parts: string[] }>();
  for (const { path, part } of holdersOf(await jobs.contents(checkpoint))) {
    const holder = await holders.read(path);
    const tables = tablesOf(holder);
    for (const file of holder.files) {
      const known = files.get(file.id);
      if (known !== undefined) known.parts.push(part);
      else files.set(file.id, { ...described(namespace, file), parts: [part], ...noTable, ...tables.get(file.id) });
    }
  }
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

const noTable = { level: undefined, entries: undefined };

function described(namespace: JobNamespace, file: FileRef) {
  const origin = fileOrigin(file.id);
  return {
    id: file.id,
    path: namespace.pathOf(file),
    sizeBytes: file.sizeBytes,
    crc32: file.crc32,
    home: file.home ?? namespace.jobId,
    generation: origin?.generation,
    mintedMs: origin?.mintedMs,
  };
}

/** Level and entries of each file, when the holder's value is a manifest. */
function tablesOf(holder: Holder): Map<string, { readonly level: number; readonly entries: number }> {
  const value = holder.value as Partial<ManifestJson> | null;
  if (value?.l0 === undefined || value.levels === undefined) return new Map();
  const { l0, levels } = manifestFromJson(value as ManifestJson);
  const runs = [...l0.map((run) => [0, run] as const), ...levels.map((run, i) => [i + 1, run] as const)];
  return new Map(
    runs.flatMap(([level, run]) => run.map(({ info }) => [info.file.id, { level, entries: info.entries }] as const)),
  );
}
