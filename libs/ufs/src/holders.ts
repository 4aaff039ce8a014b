import type { Dfs } from '@millrace/dfs';
import { compareBytes, MillraceError } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import { decodeHolder, encodeHolder, type Holder } from './holder.ts';

/** Holder objects as those see them who may not know the file system (state stores). Paths: `JobNamespace`. */
export interface HolderStore {
  /** Writes once. The same content again is fine; other content rejects with `ufs-holder-taken`. */
  put(path: string, holder: Holder, parent?: TraceContext): Promise<void>;
  /** Rejects with `ufs-missing` when there is none and with `ufs-corrupt` when it is damaged. */
  read(path: string, parent?: TraceContext): Promise<Holder>;
  /** Whether the object is there; its content is not looked at. */
  exists(path: string): Promise<boolean>;
}

/** Holder objects on a Dfs. A holder exists whole or not at all, and never changes. */
export class Holders implements HolderStore {
  readonly #dfs: Dfs;

  constructor(dfs: Dfs) {
    this.#dfs = dfs;
  }

  async put(path: string, holder: Holder, parent?: TraceContext): Promise<void> {
    const bytes = encodeHolder(holder);
    if (await this.#dfs.putIfAbsent(path, bytes, parent)) return;
    const found = await this.#dfs.readAll(path, parent);
    if (found !== undefined && compareBytes(found, bytes) === 0) return;
    throw new MillraceError('ufs-holder-taken', `holder ${path} exists with other content`, { details: { path } });
  }

  async read(path: string, parent?: TraceContext): Promise<Holder> {
    const holder = await this.find(path, parent);
    if (holder === undefined) throw missing(path, 'holder');
    return holder;
  }

  /** As {@link read}, but undefined when there is none. */
  async find(path: string, parent?: TraceContext): Promise<Holder | undefined> {
    const bytes = await this.#dfs.readAll(path, parent);
    return bytes === undefined ? undefined : decodeHolder(path, bytes);
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#dfs.stat(path)) !== undefined;
  }
}

/** Rejection for an object that something relies on and that is not there. */
export function missing(path: string, what: string): MillraceError {
  return new MillraceError('ufs-missing', `${what} ${path} does not exist`, { details: { path } });
}
