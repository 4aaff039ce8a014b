import { type Clock, MillraceError } from '@millrace/kernel';
import type { Span, Tracer } from '@millrace/telemetry';
import type { BackgroundExecutor } from '../background/executor.ts';
import { type Compaction, type CompactionPolicy, pickCompaction } from '../compaction/picker.ts';
import { type ManifestTable, manifestTable, replaceTables } from '../manifest/manifest.ts';
import type { TableInfo, TableOptions } from '../sst/table-info.ts';
import type { VersionSet } from './version-set.ts';

export interface CompactorOptions {
  readonly versions: VersionSet;
  readonly executor: BackgroundExecutor;
  readonly policy: CompactionPolicy;
  readonly tables: TableOptions;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly onProgress: () => void;
  readonly onFailure: (error: MillraceError) => void;
}

export interface CompactionStats {
  readonly merges: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** One compaction of a table at a time, as long as the picker finds one. */
export class Compactor {
  readonly #options: CompactorOptions;
  /** The last run, over or not. */
  #running: Promise<void> = Promise.resolve();
  #isBusy = false;
  #closed = false;
  #merges = 0;
  #bytesRead = 0;
  #bytesWritten = 0;

  constructor(options: CompactorOptions) {
    this.#options = options;
  }

  get stats(): CompactionStats {
    return { merges: this.#merges, bytesRead: this.#bytesRead, bytesWritten: this.#bytesWritten };
  }

  /** Looks whether there is something to do; a failure ends the run until the next look. */
  look(): void {
    if (this.#closed || this.#isBusy) return;
    const first = this.#pick();
    if (first === undefined) return;
    this.#isBusy = true;
    this.#running = this.#run(first);
  }

  /** Resolves when nothing is left to do or a failure has ended the run. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Starts nothing more and settles when the merge under way has. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  /** Whoever is told of the end may look again at once, so it is over by then. */
  async #run(first: Compaction): Promise<void> {
    try {
      for (let next: Compaction | undefined = first; next !== undefined; next = this.#pick()) {
        const made = next.kind === 'merge' ? await this.#merge(next) : [];
        this.#install(next, made);
        this.#options.onProgress();
      }
      this.#isBusy = false;
    } catch (error) {
      this.#isBusy = false;
      this.#options.onFailure(MillraceError.from(error));
    }
  }

  #pick(): Compaction | undefined {
    if (this.#closed) return undefined;
    const { versions, policy, clock } = this.#options;
    return pickCompaction(versions.current.manifest, policy, clock.nowMs());
  }

  #merge(compaction: Compaction): Promise<readonly TableInfo[]> {
    const { executor, tables, clock, tracer } = this.#options;
    const { inputs, level, isBottom } = compaction;
    const bytesRead = inputs.flat().reduce((sum, table) => sum + table.info.file.sizeBytes, 0);
    const attributes = { 'lsm.level': level, 'lsm.runs': inputs.length, 'lsm.bytes_read': bytesRead };
    return tracer.span('lsm.compact', { attributes }, async (span: Span) => {
      const runs = inputs.map((run) => run.map(({ info, clip }) => ({ info, clip })));
      const made = await executor.merge({ runs, isBottom, nowMs: clock.nowMs(), options: tables }, span.context);
      const bytesWritten = made.reduce((sum, table) => sum + table.file.sizeBytes, 0);
      span.set({ 'lsm.bytes_written': bytesWritten });
      this.#merges++;
      this.#bytesRead += bytesRead;
      this.#bytesWritten += bytesWritten;
      return made;
    });
  }

  #install({ inputs, level, kind }: Compaction, made: readonly TableInfo[]): void {
    const { versions } = this.#options;
    const removed = new Set<ManifestTable>(inputs.flat());
    const added = kind === 'move' ? inputs.flat() : made.map((info) => manifestTable(info));
    versions.install(replaceTables(versions.current.manifest, { removed, level, added }), made);
  }
}
