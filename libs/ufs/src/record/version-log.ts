import type { Dfs } from '@millrace/dfs';
import { assert } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Reaper } from '../reaper.ts';

/** What one listing of the directory shows. */
interface LogState {
  /** Numbers of the versions that are there, ascending. */
  readonly numbers: readonly number[];
  /** Everything up to here has been collected or may be at any moment; 0 before the first collection. */
  readonly boundary: number;
  /** Numbers of the boundary markers that are there, ascending. */
  readonly markers: readonly number[];
}

/** Digits of a number in a name, so that names sort as numbers. */
const digits = 20;
/** The newest markers stay: a listing that runs while one is replaced still meets the other. */
const markersKept = 2;

/**
 * Numbered immutable objects in one directory: `<20 digits>` versions and `gc-<20 digits>` boundary markers.
 *
 * A marker is written before the versions up to it are removed. So a writer that stalled so long that its number was
 * used, collected and free again may create the object, but whoever lists the directory afterwards (as each writer
 * does before it believes that it won) finds the marker at or above it. Markers are created and never overwritten,
 * and the greatest counts: a stalled collector cannot move the boundary back.
 */
export class VersionLog {
  readonly #dfs: Dfs;
  readonly #directory: string;

  constructor(dfs: Dfs, directory: string) {
    this.#dfs = dfs;
    this.#directory = directory;
  }

  path(number: number): string {
    return `${this.#directory}/${padded(number)}`;
  }

  async state(): Promise<LogState> {
    const numbers: number[] = [];
    const markers: number[] = [];
    for await (const { path } of this.#dfs.list(`${this.#directory}/`)) {
      const name = path.slice(this.#directory.length + 1);
      const match = /^(gc-)?(\d{20})$/.exec(name);
      if (match !== null) (match[1] === undefined ? numbers : markers).push(Number(match[2]));
    }
    return { numbers, boundary: markers.at(-1) ?? 0, markers };
  }

  /** True when this call created the object. Believe it only after a look at the boundary. */
  create(number: number, bytes: Uint8Array, parent?: TraceContext): Promise<boolean> {
    return this.#dfs.putIfAbsent(this.path(number), bytes, parent);
  }

  read(number: number, parent?: TraceContext): Promise<Uint8Array | undefined> {
    return this.#dfs.readAll(this.path(number), parent);
  }

  /**
   * Removes all versions but the newest `keep`. Crash order: marker, then versions, then older markers; a crash in
   * between leaves versions below the boundary, which the next collection removes. Resolves to the number removed.
   */
  async collect(keep: number, reaper: Reaper): Promise<number> {
    assert(Number.isSafeInteger(keep) && keep >= 1, `a collection keeps at least one version, not ${keep}`);
    const { numbers, boundary, markers } = await this.state();
    const collected = Math.max(boundary, (numbers.at(-1) ?? 0) - keep);
    if (collected > boundary) await this.#dfs.putIfAbsent(this.#markerPath(collected), new Uint8Array(0));
    const old = numbers.filter((number) => number <= collected);
    const { removed } = await reaper.removeNow(old.map((number) => this.path(number)));
    const known = collected > boundary ? [...markers, collected] : markers;
    await reaper.removeNow(known.slice(0, -markersKept).map((number) => this.#markerPath(number)));
    return removed.length;
  }

  #markerPath(number: number): string {
    return `${this.#directory}/gc-${padded(number)}`;
  }
}

function padded(number: number): string {
  return String(number).padStart(digits, '0');
}
