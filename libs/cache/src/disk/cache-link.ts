import type { CachedFile } from './cached-file.ts';

/** Reads of one file since the last report. */
export interface FileReads {
  readonly file: CachedFile;
  readonly hits: number;
  readonly hitBytes: number;
  readonly misses: number;
  readonly missBytes: number;
}

/** Space for a copy that a user writes through; a later one of the same ticket is for more of it. */
export interface SpaceRequest {
  /** Also the name of the temporary file. */
  readonly ticket: string;
  readonly bytes: number;
}

/** What users tell the cache; nobody waits for it. */
export type CacheNotice =
  /** Scans, such as of a compaction, are counted and tell nothing of what will be read again. */
  | { readonly kind: 'reads'; readonly reads: readonly FileReads[]; readonly areScans: boolean }
  /** A copy was published under its name. */
  | { readonly kind: 'published'; readonly ticket: string; readonly file: CachedFile }
  /** A copy was given up, and its temporary file is gone. */
  | { readonly kind: 'given-up'; readonly ticket: string; readonly why: 'aborted' | 'failed' | 'full' }
  /** A copy is not what was written. */
  | { readonly kind: 'damaged'; readonly name: string }
  /** Files that nobody will read again. */
  | { readonly kind: 'forgotten'; readonly names: readonly string[] };

/** From a user of the cache, on whatever thread, to the one that decides and counts. */
export interface CacheLink {
  /** True when there is room now; then it is the ticket's for {@link leaseMs} from the request on. */
  request(request: SpaceRequest): Promise<boolean>;
  notify(notice: CacheNotice): void;
  close(): void;
}

/** So long after its last request a ticket that was neither published nor given up is void: its user is gone. */
export const leaseMs = 60_000;
