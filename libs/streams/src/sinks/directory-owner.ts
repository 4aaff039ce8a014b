import { MillraceError } from '@millrace/kernel';
import type { OutputFiles } from './output-files.ts';
import { ownerMarkerName, type PartOwner } from './part-names.ts';
import { type Scratch, writeText } from './write-text.ts';

/** Who may write to the directory of a file sink. */
export interface DirectoryOwner extends PartOwner {
  /** Generations are ordered only within one lineage. */
  readonly lineage: string;
  readonly generation: number;
}

/** The owner that the marker names; undefined when there is no marker. */
export async function readOwner(files: OutputFiles, directory: string): Promise<DirectoryOwner | undefined> {
  const text = await files.read(ownerMarkerName);
  if (text === undefined) return undefined;
  try {
    const { job, operator, lineage, generation } = JSON.parse(text) as Record<string, unknown>;
    if (
      typeof job === 'string' &&
      typeof operator === 'string' &&
      typeof lineage === 'string' &&
      typeof generation === 'number'
    ) {
      return { job, uid: operator, lineage, generation };
    }
  } catch {
    // Said below: a marker that is not JSON and one of another shape are the same to the reader.
  }
  throw new MillraceError('sink-directory-used', `${directory}/${ownerMarkerName} does not name an owner`, {
    details: { directory },
  });
}

/** Writes the marker. `new`: only when there is none; false when somebody else was faster. */
export async function writeOwner(scratch: Scratch, owner: DirectoryOwner, how: 'new' | 'replace'): Promise<boolean> {
  const { job, uid, lineage, generation } = owner;
  const text = `${JSON.stringify({ version: 1, job, operator: uid, lineage, generation })}\n`;
  return writeText(scratch, { name: ownerMarkerName, text, how });
}

/** The directory is another job's, another operator's, or that of the same job with other state. */
export function ownedByOther(directory: string, own: PartOwner, found: PartOwner): MillraceError {
  const other = own.job === found.job && own.uid === found.uid;
  const whose = other
    ? `is used by job "${found.job}" with other state (another data directory)`
    : `belongs to operator "${found.uid}" of job "${found.job}", and "${own.uid}" of "${own.job}" would mix its output into it`;
  return new MillraceError(
    'sink-directory-used',
    `${directory} ${whose}; choose another directory, or remove this one with ${ownerMarkerName} if its owner is gone`,
    { details: { directory, job: own.job, operator: own.uid, ownerJob: found.job, ownerOperator: found.uid } },
  );
}

export function fencedByNewer(directory: string, own: DirectoryOwner, newest: number): MillraceError {
  return new MillraceError(
    'attempt-fenced',
    `generation ${own.generation} of ${own.job} is over: generation ${newest} writes to ${directory}`,
    { details: { directory, job: own.job, generation: own.generation, newest } },
  );
}
