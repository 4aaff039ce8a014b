import { assert, MillraceError } from '@millrace/kernel';
import { BaseOperator } from '../operators/base-operator.ts';
import type { OperatorContext, OperatorPart } from '../runtime/operator.ts';
import type { OutputFile, OutputFiles } from './output-files.ts';
import {
  hiddenGeneration,
  inProgressName,
  isPublished,
  type PartId,
  type PartOwner,
  pendingName,
  publishedName,
} from './part-names.ts';

export interface FileSinkOptions {
  readonly files: OutputFiles;
  readonly directory: string;
  readonly overwrite: boolean;
}

/** Bytes gathered before they go to the file. */
const chunkBytes = 128 * 1024;
const newline = '\n';

/** A transaction: the records between two barriers, complete and durable under its pending name. */
interface Pending extends PartId {
  readonly kind: 'pending';
}

/**
 * Two-phase commit by renaming. Crash order:
 * 1. records go to `.inprogress-…`; lost in a crash, and replayed from the checkpoint before;
 * 2. at the barrier: sync, close, rename to `.pending-…`, and only then the name goes into the checkpoint. A crash
 *    between leaves a file that no registered checkpoint names: the next restore removes it;
 * 3. when the checkpoint is registered: rename to `part-…`. A crash before or between is made good at the restore, which
 *    publishes everything that its checkpoint names; a rename that was done before counts as done.
 * Only a registered round brings `complete`, and no round of a fenced attempt can be registered, so a zombie publishes
 * nothing but what the newest registered checkpoint names too. Names hold the generation: two attempts never share one.
 */
export class FileSinkOperator extends BaseOperator {
  readonly #options: FileSinkOptions;
  readonly #encoder = new TextEncoder();
  #owner: PartOwner = { job: '', uid: '' };
  #lines: string[] = [];
  #size = 0;
  #file: OutputFile | undefined;
  #fileName = '';
  #sequence = 0;
  #pending: Pending[] = [];
  /** Everything that was prepared so far; a checkpoint also names what earlier, unregistered rounds prepared. */
  #prepared: Promise<void> = Promise.resolve();
  /** Commits run one after the other. */
  #commits: Promise<void> = Promise.resolve();

  constructor(options: FileSinkOptions) {
    super();
    this.#options = options;
  }

  override async open(context: OperatorContext): Promise<void> {
    await super.open(context);
    this.#owner = { job: context.slot.job, uid: context.uid };
    await this.#guard(async () => {
      const all = pendingOfAll(context);
      if (context.subtask === 0) await this.#sweep(context, all);
      for (const part of (context.restoredList ?? []) as readonly Pending[]) await this.#publish(part);
    });
  }

  override record(value: unknown): void | Promise<void> {
    const line = JSON.stringify(value) as string | undefined;
    if (line === undefined) throw new MillraceError('bad-argument', `${this.context.uid}: a record is not JSON`);
    this.#lines.push(line);
    this.#size += line.length + 1;
    if (this.#size >= chunkBytes) return this.#write();
  }

  override async snapshot(checkpoint: number): Promise<OperatorPart> {
    const { subtask, slot } = this.context;
    const part: Pending = { kind: 'pending', subtask, generation: slot.generation, checkpoint };
    // Up to the first await, so that what comes next goes to the next file.
    const [file, fileName, rest] = [this.#file, this.#fileName, this.#take()];
    this.#file = undefined;
    if (file !== undefined || rest !== undefined) {
      this.#pending.push(part);
      this.#prepared = this.#prepared.then(() => this.#guard(() => this.#prepare(part, rest, file, fileName)));
    }
    const list = [...this.#pending];
    try {
      await this.#prepared;
    } catch (error) {
      // The records of the lost file are nowhere else: a later round cannot make up for it.
      this.context.fail(error);
      throw error;
    }
    return { list };
  }

  override async complete(checkpoint: number): Promise<void> {
    const due = this.#pending.filter((part) => part.checkpoint <= checkpoint);
    this.#commits = this.#commits.then(async () => {
      for (const part of due) {
        if (!this.#pending.includes(part)) continue;
        await this.#guard(() => this.#publish(part));
        this.#pending = this.#pending.filter((other) => other !== part);
      }
    });
    await this.#commits;
  }

  override async close(): Promise<void> {
    const [file, name] = [this.#file, this.#fileName];
    this.#file = undefined;
    if (file === undefined) return;
    await this.#guard(async () => {
      await file.close();
      await this.#options.files.remove(name);
    });
  }

  /** Moves what was gathered to the file. */
  async #write(): Promise<void> {
    const bytes = this.#take();
    if (bytes === undefined) return;
    await this.#guard(async () => {
      if (this.#file === undefined) [this.#file, this.#fileName] = await this.#create();
      await this.#file.append(bytes);
    });
  }

  async #create(): Promise<[OutputFile, string]> {
    const { subtask, slot } = this.context;
    const name = inProgressName(this.#owner, { subtask, generation: slot.generation }, this.#sequence++);
    return [await this.#options.files.create(name), name];
  }

  #take(): Uint8Array | undefined {
    if (this.#lines.length === 0) return undefined;
    const bytes = this.#encoder.encode(this.#lines.join(newline) + newline);
    this.#lines = [];
    this.#size = 0;
    return bytes;
  }

  async #prepare(
    part: Pending,
    rest: Uint8Array | undefined,
    open: OutputFile | undefined,
    openName: string,
  ): Promise<void> {
    const [file, name] = open === undefined ? await this.#create() : [open, openName];
    if (rest !== undefined) await file.append(rest);
    await file.sync();
    await file.close();
    const renamed = await this.#options.files.rename(name, pendingName(this.#owner, part));
    assert(renamed === 'done', `the file ${name} disappeared while it was written`);
  }

  /** Makes a transaction visible; idempotent. */
  async #publish(part: PartId): Promise<void> {
    const { files, directory } = this.#options;
    const from = pendingName(this.#owner, part);
    const to = publishedName(part);
    if ((await files.rename(from, to)) === 'done' || (await files.exists(to))) return;
    throw new MillraceError('sink-output-missing', `neither ${from} nor ${to} is in ${directory}`, {
      details: { directory, pending: from, published: to },
    });
  }

  /**
   * Before the first record, by one subtask: removes hidden files of older attempts that the restored checkpoint does not
   * name. They belong to rounds that were never registered and never will be. At an empty start it also makes sure that
   * the directory holds no output of an earlier run.
   */
  async #sweep(context: OperatorContext, named: readonly PartId[]): Promise<void> {
    const { files, directory, overwrite } = this.#options;
    const keep = new Set(named.map((part) => pendingName(this.#owner, part)));
    const names = await files.list();
    for (const name of names) {
      const generation = hiddenGeneration(this.#owner, name);
      if (generation === undefined || generation >= context.slot.generation || keep.has(name)) continue;
      await files.remove(name);
    }
    if (context.slot.restore !== undefined) return;
    const published = names.filter(isPublished);
    if (published.length > 0 && !overwrite) {
      throw new MillraceError(
        'sink-directory-used',
        `${directory} holds ${published.length} files of an earlier run (${published[0]}, …); set overwrite: true to remove them`,
        { details: { directory, files: published.length } },
      );
    }
    for (const name of published) await files.remove(name);
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw MillraceError.from(error, 'sink-io');
    }
  }
}

function pendingOfAll(context: OperatorContext): readonly PartId[] {
  const parts = context.slot.restore?.filter((part) => part.operator === context.uid) ?? [];
  return parts.flatMap((part) => (part.list ?? []) as readonly Pending[]);
}
