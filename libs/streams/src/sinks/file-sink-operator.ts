import { assert, isKind, MillraceError } from '@millrace/kernel';
import { BaseOperator } from '../operators/base-operator.ts';
import type { OperatorContext, OperatorPart } from '../runtime/operator.ts';
import { DirectoryClaim } from './directory-claim.ts';
import type { DirectoryOwner } from './directory-owner.ts';
import type { OutputFile, OutputFiles } from './output-files.ts';
import type { PartEncoder, PartFormat } from './part-format.ts';
import { hiddenGeneration, inProgressName, type PartId, pendingName, publishedName } from './part-names.ts';
import { PublishedLog } from './published-log.ts';

export interface FileSinkOptions {
  readonly files: OutputFiles;
  readonly directory: string;
  readonly overwrite: boolean;
  readonly format: PartFormat;
}

/** Bytes gathered before they go to the file. */
const chunkBytes = 128 * 1024;

/** A transaction: the records between two barriers, complete and durable under its pending name. */
interface Pending extends PartId {
  readonly kind: 'pending';
}

/** Failed tries in a row to publish, after which the job restarts from the checkpoint; the restore publishes. */
const commitTriesMax = 3;

/**
 * Two-phase commit by renaming. Crash order:
 * 1. records go to `.inprogress-…`; lost in a crash, and replayed from the checkpoint before;
 * 2. at the barrier: sync, close, rename to `.pending-…`, and only then the name goes into the checkpoint. A crash
 *    between leaves a file that no registered checkpoint names: the next restore removes it;
 * 3. when the checkpoint is registered: the log of published parts (PublishedLog), then a move to `part-…`, which never
 *    replaces. A crash before or between is made good at the restore, which publishes everything that its checkpoint
 *    names; a move that was done before counts as done, and so does a logged file that a reader has taken since.
 * Only a registered round brings `complete`, and no round of a fenced attempt can be registered, so a zombie publishes
 * nothing but what the newest registered checkpoint names too. Names hold the generation: two attempts of one lineage
 * never share one; other writers are kept out by the owner marker (DirectoryClaim).
 */
export class FileSinkOperator extends BaseOperator {
  readonly #options: FileSinkOptions;
  #owner: DirectoryOwner = { job: '', uid: '', lineage: '', generation: 0 };
  #claim: DirectoryClaim | undefined;
  #log: PublishedLog | undefined;
  #encoder: PartEncoder | undefined;
  #file: OutputFile | undefined;
  #fileName = '';
  #sequence = 0;
  #pending: Pending[] = [];
  /** Everything that was prepared so far; a checkpoint also names what earlier, unregistered rounds prepared. */
  #prepared: Promise<void> = Promise.resolve();
  #newestSnapshot = 0;
  /** Commits run one after the other; a failed one does not stop the next. */
  #commits: Promise<void> = Promise.resolve();
  #failedCommits = 0;

  constructor(options: FileSinkOptions) {
    super();
    this.#options = options;
  }

  override async open(context: OperatorContext): Promise<void> {
    await super.open(context);
    const { slot, uid, subtask } = context;
    const { files, directory, overwrite } = this.#options;
    const { job, generation, lineage = '' } = slot;
    this.#owner = { job, uid, lineage, generation, extension: this.#options.format.extension };
    const scratch = { files, nextName: () => this.#nextName() };
    const claim = new DirectoryClaim(scratch, { directory, overwrite, owner: this.#owner });
    const log = new PublishedLog(scratch, this.#owner, { subtask, generation });
    this.#claim = claim;
    this.#log = log;
    await this.#guard(async () => {
      const names = await files.list();
      await claim.take(names, slot.restore === undefined ? 'empty' : 'restored');
      await this.#sweep(names, pendingOfAll(context));
      if (slot.restore === undefined) return;
      await log.load(names);
      const parts = (context.restoredList ?? []) as readonly Pending[];
      await this.#publishAll(parts, Math.max(0, ...parts.map((part) => part.checkpoint)));
    });
  }

  override record(value: unknown): void | Promise<void> {
    this.#encoder ??= this.#options.format.create();
    this.#add(this.#encoder, value);
    if (this.#encoder.bytes >= chunkBytes) return this.#write(this.#encoder);
  }

  override async snapshot(checkpoint: number): Promise<OperatorPart> {
    const { subtask, slot } = this.context;
    const part: Pending = { kind: 'pending', subtask, generation: slot.generation, checkpoint };
    this.#newestSnapshot = checkpoint;
    // Up to the first await, so that what comes next goes to the next file.
    const [file, fileName, rest] = [this.#file, this.#fileName, this.#encoder?.finish()];
    this.#file = undefined;
    this.#encoder = undefined;
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
    const commit = this.#commits.then(() => this.#commit(checkpoint));
    this.#commits = commit.catch(() => undefined); // a repeated call, or the next round's, tries again
    await commit;
  }

  async #commit(checkpoint: number): Promise<void> {
    const due = this.#pending.filter((part) => part.checkpoint <= checkpoint);
    if (due.length === 0) return;
    try {
      await this.#guard(async () => {
        await this.#claim?.verify();
        await this.#publishAll(due, checkpoint);
        await this.#log?.dropOlder();
      });
      this.#failedCommits = 0;
    } catch (error) {
      this.#failedCommits += 1;
      if (this.#failedCommits >= commitTriesMax || !isKind(error, 'retry')) this.context.fail(error);
      throw error;
    }
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

  #add(encoder: PartEncoder, value: unknown): void {
    try {
      encoder.add(value);
    } catch (error) {
      const { code, message } = MillraceError.from(error);
      throw new MillraceError(code, `${this.context.uid}: ${message}`, { cause: error });
    }
  }

  /** Moves what was gathered to the file. */
  async #write(encoder: PartEncoder): Promise<void> {
    const bytes = encoder.take();
    await this.#guard(async () => {
      if (this.#file === undefined) [this.#file, this.#fileName] = await this.#create();
      await this.#file.append(bytes);
    });
  }

  async #create(): Promise<[OutputFile, string]> {
    const name = this.#nextName();
    return [await this.#options.files.create(name), name];
  }

  #nextName(): string {
    const { subtask, slot } = this.context;
    return inProgressName(this.#owner, { subtask, generation: slot.generation }, this.#sequence++);
  }

  async #prepare(
    part: Pending,
    rest: Uint8Array | undefined,
    open: OutputFile | undefined,
    openName: string,
  ): Promise<void> {
    const [file, name] = open === undefined ? await this.#create() : [open, openName];
    if (rest !== undefined && rest.length > 0) await file.append(rest);
    await file.sync();
    await file.close();
    const renamed = await this.#options.files.rename(name, pendingName(this.#owner, part));
    assert(renamed === 'done', `the file ${name} disappeared while it was written`);
  }

  /** Makes what round `checkpoint` registered visible; idempotent. */
  async #publishAll(parts: readonly Pending[], checkpoint: number): Promise<void> {
    if (parts.length === 0) return;
    // The log may name nothing that was lost: it would hide the loss from the next restore.
    for (const part of parts) await this.#find(part);
    await this.#log?.announce(parts, checkpoint);
    for (const part of parts) {
      await this.#publish(part);
      this.#pending = this.#pending.filter((other) => other !== part);
      this.#log?.done(part, this.#newestSnapshot);
    }
  }

  async #find(part: PartId): Promise<void> {
    const { files, directory } = this.#options;
    const [pending, published] = [pendingName(this.#owner, part), publishedName(this.#owner, part)];
    if ((await files.exists(pending)) || (await files.exists(published)) || this.#log?.covers(part)) return;
    throw new MillraceError(
      'sink-output-missing',
      `neither ${pending} nor ${published} is in ${directory}, and no log says that it was published`,
      { details: { directory, pending, published } },
    );
  }

  async #publish(part: PartId): Promise<void> {
    const { files, directory } = this.#options;
    const to = publishedName(this.#owner, part);
    // `missing` was published before: `#find` has seen to it. The move has made that durable.
    if ((await files.move(pendingName(this.#owner, part), to)) !== 'taken') return;
    throw new MillraceError(
      'sink-directory-used',
      `${directory} already holds another ${to}, which this sink did not write: give it a directory of its own`,
      { details: { directory, file: to } },
    );
  }

  /**
   * Before the first record: removes hidden files of older attempts that the restored checkpoint does not name. They
   * belong to rounds that were never registered and never will be.
   */
  async #sweep(names: readonly string[], named: readonly PartId[]): Promise<void> {
    const keep = new Set(named.map((part) => pendingName(this.#owner, part)));
    for (const name of names) {
      const generation = hiddenGeneration(this.#owner, name);
      if (generation === undefined || generation >= this.#owner.generation || keep.has(name)) continue;
      await this.#options.files.remove(name);
    }
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
