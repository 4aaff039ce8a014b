/**
 * Which version is current, who still reads older ones, and which files may go. A file goes when no version that
 * somebody can read names it, this table made it, and no snapshot ever named it; in every other case it is left to
 * the job's retention or sweep, so a crash at any point can leak a file and never lose one.
 */
import type { BlockCache } from '@millrace/cache';
import type { FileRef, FileStore } from '@millrace/ufs';
import { filesOf, type Manifest, type ManifestTable } from '../manifest/manifest.ts';
import { SstReader } from '../sst/sst-reader.ts';
import type { TableInfo } from '../sst/table-info.ts';
import { Version } from './version.ts';

export interface VersionSetOptions {
  readonly files: FileStore;
  readonly cache: BlockCache;
  readonly discard: (files: readonly FileRef[]) => void;
}

/** Keeps a version's files readable. */
export interface Lease {
  readonly version: Version;
  /** Idempotent. */
  release(): void;
}

export class VersionSet {
  #current: Version;
  readonly #options: VersionSetOptions;
  readonly #readers = new Map<string, SstReader>();
  readonly #leases = new Set<Lease>();
  /** Made here and in no snapshot so far. */
  readonly #own = new Set<string>();
  /** Files of the newest snapshot, or of the restored manifest. */
  #snapshotted: ReadonlySet<string>;

  constructor(manifest: Manifest, options: VersionSetOptions) {
    this.#options = options;
    this.#current = this.#versionOf(manifest);
    this.#snapshotted = new Set(filesOf(manifest).map((file) => file.id));
  }

  get current(): Version {
    return this.#current;
  }

  /** Filters and indexes in memory. */
  get memoryBytes(): number {
    let sum = 0;
    for (const reader of this.#readers.values()) sum += reader.memoryBytes;
    return sum;
  }

  /** Makes `manifest` current; `made` are the tables that it has and the one before had not. */
  install(manifest: Manifest, made: readonly TableInfo[]): void {
    for (const table of made) this.#own.add(table.file.id);
    this.#current = this.#versionOf(manifest);
    this.#sweep();
  }

  lease(): Lease {
    const lease: Lease = {
      version: this.#current,
      release: () => {
        if (this.#leases.delete(lease) && lease.version !== this.#current) this.#sweep();
      },
    };
    this.#leases.add(lease);
    return lease;
  }

  /** The current manifest as part of a snapshot: from here on its files are not this table's to remove. */
  snapshot(): { readonly manifest: Manifest; readonly bytesPut: number; readonly bytesLinked: number } {
    const { manifest } = this.#current;
    const files = filesOf(manifest);
    let bytesPut = 0;
    let bytesLinked = 0;
    for (const { id, sizeBytes } of files) {
      if (this.#snapshotted.has(id)) bytesLinked += sizeBytes;
      else bytesPut += sizeBytes;
      this.#own.delete(id);
    }
    this.#snapshotted = new Set(files.map((file) => file.id));
    return { manifest, bytesPut, bytesLinked };
  }

  /** Closes every reader and removes what no snapshot names. */
  close(): void {
    for (const reader of this.#readers.values()) reader.close();
    this.#discard([...this.#readers.values()].map((reader) => reader.info.file));
    this.#readers.clear();
  }

  #versionOf(manifest: Manifest): Version {
    return new Version(manifest, (table) => this.#readerOf(table));
  }

  #readerOf({ info }: ManifestTable): SstReader {
    let reader = this.#readers.get(info.file.id);
    if (reader === undefined) {
      reader = new SstReader(info, this.#options.files, this.#options.cache);
      this.#readers.set(info.file.id, reader);
    }
    return reader;
  }

  #sweep(): void {
    const readable = [this.#current, ...new Set([...this.#leases].map((lease) => lease.version))];
    const gone: FileRef[] = [];
    for (const [id, reader] of this.#readers) {
      if (readable.some((version) => version.readers.has(id))) continue;
      reader.close();
      this.#readers.delete(id);
      gone.push(reader.info.file);
    }
    this.#discard(gone);
  }

  #discard(files: readonly FileRef[]): void {
    const own = files.filter((file) => this.#own.delete(file.id));
    if (own.length > 0) this.#options.discard(own);
  }
}
