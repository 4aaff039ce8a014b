import { MillraceError } from '@millrace/kernel';
import { type DirectoryOwner, fencedByNewer, ownedByOther, readOwner, writeOwner } from './directory-owner.ts';
import { hiddenGeneration, ownerMarkerName, publishedGeneration, publishedLogGeneration } from './part-names.ts';
import type { Scratch } from './write-text.ts';

export interface ClaimOptions {
  readonly directory: string;
  readonly overwrite: boolean;
  readonly owner: DirectoryOwner;
}

/** Tries to take a directory whose marker other writers make and remove meanwhile. */
const claimTriesMax = 5;

/**
 * A sink's hold on its directory, by the marker `.millrace-owner`: job, operator, lineage and generation of who writes.
 * Every subtask takes it, because runners on other hosts may have a directory of their own under the same path.
 *
 * - Another job or operator: refused, whatever the settings.
 * - Same lineage: generations are ordered. A newer one in the marker, or in the name of a published file, fences this
 *   attempt. An empty start removes only files of generations before its own, and those are of earlier runs: this run has
 *   registered nothing yet.
 * - Another lineage (the same job with a fresh data directory): generations say nothing. An empty start takes the directory
 *   over when it holds nothing, or with `overwrite`; a restore never does. Who lost it learns so at its next publishing.
 *
 * Crash order: files are removed before the marker is written, so a crash between repeats the decision. The marker is
 * made exclusively, and the names were listed before it was read: what is removed was there under the owner that was read.
 */
export class DirectoryClaim {
  readonly #scratch: Scratch;
  readonly #options: ClaimOptions;

  constructor(scratch: Scratch, options: ClaimOptions) {
    this.#scratch = scratch;
    this.#options = options;
  }

  /** Before anything is written. `names`: what the directory held before. */
  async take(names: readonly string[], start: 'empty' | 'restored'): Promise<void> {
    const { owner, directory } = this.#options;
    for (let tries = 0; tries < claimTriesMax; tries++) {
      const found = await this.#read();
      const related = found === undefined || found.lineage === owner.lineage;
      if (found !== undefined && related && found.generation > owner.generation) {
        throw fencedByNewer(directory, owner, found.generation);
      }
      if (start === 'restored' && found !== undefined && !related) throw ownedByOther(directory, owner, found);
      // Another subtask of this attempt has taken it.
      if (found !== undefined && related && found.generation === owner.generation) return;
      if (start === 'empty') await this.#clear(names, found);
      if (await writeOwner(this.#scratch, owner, found === undefined ? 'new' : 'replace')) return;
    }
    throw new MillraceError('sink-io', `${directory}/${ownerMarkerName} comes and goes`, { details: { directory } });
  }

  /** Before something is published: still ours. */
  async verify(): Promise<void> {
    const { owner, directory } = this.#options;
    const found = await this.#read();
    if (found === undefined) return this.take([], 'restored');
    if (found.lineage !== owner.lineage) throw ownedByOther(directory, owner, found);
  }

  async #read(): Promise<DirectoryOwner | undefined> {
    const { owner, directory } = this.#options;
    const found = await readOwner(this.#scratch.files, directory);
    if (found !== undefined && (found.job !== owner.job || found.uid !== owner.uid)) {
      throw ownedByOther(directory, owner, found);
    }
    return found;
  }

  /** Removes what earlier runs left, if that is allowed. */
  async #clear(names: readonly string[], found: DirectoryOwner | undefined): Promise<void> {
    const { owner, directory, overwrite } = this.#options;
    const foreign = found !== undefined && found.lineage !== owner.lineage;
    const published = names.filter((name) => publishedGeneration(name) !== undefined);
    const newest = Math.max(0, ...published.map((name) => publishedGeneration(name) as number));
    const hidden = foreign ? names.filter((name) => this.#isForeignHidden(name)) : [];
    if (!foreign && newest >= owner.generation) {
      if (found !== undefined) throw fencedByNewer(directory, owner, newest);
      throw used(directory, published, `without ${ownerMarkerName}, so that nobody knows whose; move them away`);
    }
    if (!overwrite && published.length + hidden.length > 0) {
      throw used(directory, [...published, ...hidden], 'of an earlier run; set overwrite: true to remove them');
    }
    const logs = names.filter((name) => publishedLogGeneration(owner, name) !== undefined);
    for (const name of [...published, ...hidden, ...logs]) await this.#scratch.files.remove(name);
  }

  /** Those of this generation may already be another subtask's of this attempt. */
  #isForeignHidden(name: string): boolean {
    const { owner } = this.#options;
    const generation = hiddenGeneration(owner, name);
    return generation !== undefined && generation !== owner.generation;
  }
}

function used(directory: string, files: readonly string[], words: string): MillraceError {
  return new MillraceError(
    'sink-directory-used',
    `${directory} holds ${files.length} files (${files[0]}, …) ${words}`,
    { details: { directory, files: files.length } },
  );
}
