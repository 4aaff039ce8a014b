import { MillraceError } from '@millrace/kernel';
import type { FileRef } from './file-store.ts';

/** Which table's state at which checkpoint a snapshot object holds. */
export interface SnapshotName {
  readonly checkpoint: number;
  readonly operator: string;
  readonly subtask: number;
  readonly generation: number;
}

/** A numbered object of one round: a table's snapshot, or the list of what a checkpoint consists of. */
export interface RoundObject {
  readonly checkpoint: number;
  readonly generation: number;
}

/**
 * Where the objects of one job lie on the file system. All paths are whole paths, from the root of the Dfs:
 * `<job>/record/…` the job's fenced record · `<job>/files/<id>` physical files ·
 * `<job>/snapshots/<checkpoint>/<operator>-<subtask>-g<generation>` holders of tables ·
 * `<job>/checkpoints/<checkpoint>-g<generation>.json` · `<job>/holders/<name>` other holders (pins of forks) ·
 * `<job>/origins/<claim>` where a fork's files lie.
 */
export class JobNamespace {
  readonly jobId: string;
  readonly recordDirectory: string;
  readonly filesPrefix: string;
  readonly snapshotsPrefix: string;
  readonly checkpointsPrefix: string;
  readonly holdersPrefix: string;
  readonly originsPrefix: string;
  readonly #root: string;

  constructor(jobId: string) {
    if (jobId === '') throw new MillraceError('bad-argument', 'a job id is not empty');
    this.jobId = jobId;
    this.#root = encodeName(jobId);
    this.recordDirectory = `${this.#root}/record`;
    this.filesPrefix = `${this.#root}/files/`;
    this.snapshotsPrefix = `${this.#root}/snapshots/`;
    this.checkpointsPrefix = `${this.#root}/checkpoints/`;
    this.holdersPrefix = `${this.#root}/holders/`;
    this.originsPrefix = `${this.#root}/origins/`;
  }

  filePath(id: string): string {
    return this.filesPrefix + id;
  }

  /** Where a file lies that something in this namespace names. */
  pathOf(file: FileRef): string {
    return file.home === undefined ? this.filePath(file.id) : new JobNamespace(file.home).filePath(file.id);
  }

  snapshotPath(name: SnapshotName): string {
    const { checkpoint, operator, subtask, generation } = name;
    return `${this.snapshotsPrefix}${checkpoint}/${encodeName(operator)}-${subtask}-g${generation}`;
  }

  checkpointPath(checkpoint: number, generation: number): string {
    return `${this.checkpointsPrefix}${checkpoint}-g${generation}.json`;
  }

  holderPath(name: string): string {
    return this.holdersPrefix + encodeName(name);
  }

  originPath(claim: string): string {
    return this.originsPrefix + encodeName(claim);
  }

  /** The id of the file at `path`; undefined when it lies elsewhere. */
  fileIdOf(path: string): string | undefined {
    return path.startsWith(this.filesPrefix) ? path.slice(this.filesPrefix.length) : undefined;
  }

  /** Round and generation of a snapshot or checkpoint object; undefined for what is neither. */
  roundOf(path: string): RoundObject | undefined {
    const match = path.startsWith(this.snapshotsPrefix)
      ? /^(\d{1,15})\/.+-g(\d{1,15})$/.exec(path.slice(this.snapshotsPrefix.length))
      : path.startsWith(this.checkpointsPrefix)
        ? /^(\d{1,15})-g(\d{1,15})\.json$/.exec(path.slice(this.checkpointsPrefix.length))
        : null;
    return match === null ? undefined : { checkpoint: Number(match[1]), generation: Number(match[2]) };
  }
}

/** A name as one part of a path, reversible: what is not plain is percent-encoded, so `/` and `..` cannot occur. */
function encodeName(name: string): string {
  if (!name.isWellFormed()) throw new MillraceError('bad-argument', 'a name has a lone surrogate');
  const encoded = encodeURIComponent(name);
  return encoded === '.' || encoded === '..' ? encoded.replaceAll('.', '%2E') : encoded;
}
