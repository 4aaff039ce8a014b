import { crc32 } from 'node:zlib';
import { MillraceError, Semaphore } from '@millrace/kernel';
import type { JobRecord } from '@millrace/proto/control';
import { type FileRef, type Holder, Holders, JobNamespace } from '@millrace/ufs';
import { holdersOf, partsOf } from './checkpoint-parts.ts';
import { CheckpointState } from './checkpoint-state.ts';
import { nameOf, pinName } from './job-survey.ts';
import { checkpointsOf, type StoredCheckpoint, type StoredJobs } from './stored-jobs.ts';

/** Something that is not as it was written. */
export interface Problem {
  /** Whole path of what is wrong. */
  readonly path: string;
  /** One sentence. */
  readonly what: string;
  /** Checkpoints and pins that need it. */
  readonly affects: readonly string[];
}

export interface VerifyOptions {
  /** Also reads every entry of every table, which checks each block by its own checksum. */
  readonly deep?: boolean;
  readonly onProgress?: ((done: VerifyProgress) => void) | undefined;
}

export interface VerifyProgress {
  readonly files: number;
  readonly filesTotal: number;
  readonly bytes: number;
  readonly bytesTotal: number;
}

export interface VerifyReport {
  readonly job: string;
  readonly checkpoints: number;
  readonly holders: number;
  readonly files: number;
  readonly bytes: number;
  /** Entries read in a deep check. */
  readonly entries: number;
  /** Tables of stores that keep their snapshots themselves: nothing of them was checked. */
  readonly tablesElsewhere: number;
  readonly problems: readonly Problem[];
}

/** Files read together, and bytes of one read. */
const concurrency = 4;
const chunkBytes = 4 << 20;

/**
 * Reads everything that a job relies on and checks it: the record, each checkpoint's description, each holder, and the
 * whole content of each live file, those of other jobs included, against the checksums that are stored with their names.
 * Changes nothing. Beside a running job, what was given up meanwhile is no problem.
 */
export async function verifyJob(jobs: StoredJobs, job: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const verification = new Verification(jobs, job, options);
  await verification.run();
  return await verification.report();
}

class Verification {
  readonly #jobs: StoredJobs;
  readonly #job: string;
  readonly #options: VerifyOptions;
  readonly #namespace: JobNamespace;
  readonly #holders: Holders;
  readonly #problems = new Map<string, { what: string; affects: Set<string> }>();
  /** Live files by path, with what names them. */
  readonly #files = new Map<string, { readonly file: FileRef; readonly users: Set<string> }>();
  #record: JobRecord | undefined;
  #checkpoints = 0;
  #holdersRead = 0;
  #filesRead = 0;
  #bytesRead = 0;
  #entries = 0;
  #tablesElsewhere = 0;

  constructor(jobs: StoredJobs, job: string, options: VerifyOptions) {
    this.#jobs = jobs;
    this.#job = job;
    this.#options = options;
    this.#namespace = new JobNamespace(job);
    this.#holders = new Holders(jobs.dfs);
  }

  async run(): Promise<void> {
    this.#record = await this.#try(this.#namespace.recordDirectory, 'the job', () => this.#jobs.findRecord(this.#job));
    const checkpoints = this.#record === undefined ? [] : checkpointsOf(this.#record);
    for (const checkpoint of checkpoints) await this.#checkpoint(checkpoint);
    await this.#pins();
    await this.#foreignPins();
    await this.#contents();
    if (this.#options.deep === true) for (const checkpoint of checkpoints) await this.#entriesOf(checkpoint);
  }

  async report(): Promise<VerifyReport> {
    const problems = await this.#stillTrue();
    return {
      job: this.#job,
      checkpoints: this.#checkpoints,
      holders: this.#holdersRead,
      files: this.#filesRead,
      bytes: this.#bytesRead,
      entries: this.#entries,
      tablesElsewhere: this.#tablesElsewhere,
      problems: problems.sort((a, b) => (a.path < b.path ? -1 : 1)),
    };
  }

  async #checkpoint(checkpoint: StoredCheckpoint): Promise<void> {
    const name = nameOf(checkpoint);
    const contents = await this.#try(checkpoint.path, name, () => this.#jobs.contents(checkpoint));
    if (contents === undefined) return;
    this.#checkpoints++;
    this.#tablesElsewhere += partsOf(contents).filter(({ table }) => table?.holders.length === 0).length;
    for (const { path, part } of holdersOf(contents)) {
      const user = `${name}: ${part}`;
      const holder = await this.#try(path, user, () => this.#holders.read(path));
      if (holder !== undefined) this.#take(holder, user);
    }
  }

  async #pins(): Promise<void> {
    for await (const { path } of this.#jobs.dfs.list(this.#namespace.holdersPrefix)) {
      const holder = await this.#try(path, 'a pin', () => this.#holders.find(path));
      if (holder !== undefined) this.#take(holder, pinName(this.#namespace, path, holder));
    }
  }

  /** A fork's files lie elsewhere, and its pins there must hold them. */
  async #foreignPins(): Promise<void> {
    const foreign = [...this.#files].filter(([, { file }]) => file.home !== undefined && file.home !== this.#job);
    for (const [home, files] of Map.groupBy(foreign, ([, { file }]) => file.home ?? '')) {
      const pinned = new Set<string>();
      const namespace = new JobNamespace(home);
      for await (const { path } of this.#jobs.dfs.list(namespace.holdersPrefix)) {
        const holder = await this.#holders.find(path).catch(() => undefined);
        if (holder === undefined || pinName(namespace, path, holder) !== `fork ${this.#job}`) continue;
        for (const { id } of holder.files) pinned.add(id);
      }
      for (const [path, { file, users }] of files) {
        if (pinned.has(file.id)) continue;
        const what = `no pin of ${this.#job} holds it in the namespace of ${home}: it may be deleted at any time`;
        for (const user of users) this.#problem(path, what, user);
      }
    }
  }

  #take(holder: Holder, user: string): void {
    this.#holdersRead++;
    for (const file of holder.files) {
      const path = this.#namespace.pathOf(file);
      const known = this.#files.get(path);
      if (known === undefined) this.#files.set(path, { file, users: new Set([user]) });
      else known.users.add(user);
      if (known !== undefined && (known.file.crc32 !== file.crc32 || known.file.sizeBytes !== file.sizeBytes)) {
        this.#problem(path, 'two holders tell different sizes or checksums of it', user);
      }
    }
  }

  async #contents(): Promise<void> {
    const permits = new Semaphore(concurrency);
    const bytesTotal = [...this.#files.values()].reduce((sum, { file }) => sum + file.sizeBytes, 0);
    const read = async (path: string, file: FileRef, users: ReadonlySet<string>): Promise<void> => {
      const wrong = await this.#wrongWith(path, file);
      for (const user of wrong === undefined ? [] : users) this.#problem(path, wrong ?? '', user);
      this.#filesRead++;
      this.#bytesRead += file.sizeBytes;
      const { onProgress } = this.#options;
      onProgress?.({ files: this.#filesRead, filesTotal: this.#files.size, bytes: this.#bytesRead, bytesTotal });
    };
    await Promise.all([...this.#files].map(([path, { file, users }]) => permits.run(() => read(path, file, users))));
  }

  async #wrongWith(path: string, file: FileRef): Promise<string | undefined> {
    const { dfs } = this.#jobs;
    const found = await dfs.stat(path);
    if (found === undefined) return 'it does not exist';
    if (found.sizeBytes !== file.sizeBytes) return `it has ${found.sizeBytes} bytes, not ${file.sizeBytes}`;
    let checksum = 0;
    for (let offset = 0; offset < file.sizeBytes; offset += chunkBytes) {
      checksum = crc32(await dfs.read(path, offset, Math.min(chunkBytes, file.sizeBytes - offset)), checksum);
    }
    return checksum === file.crc32 ? undefined : `its checksum is ${hex(checksum)}, not ${hex(file.crc32)}`;
  }

  async #entriesOf(checkpoint: StoredCheckpoint): Promise<void> {
    const record = this.#record;
    const name = nameOf(checkpoint);
    if (record === undefined) return;
    const open = () => CheckpointState.open({ jobs: this.#jobs, record, checkpoint });
    const state = await this.#try(checkpoint.path, name, open);
    for (const operator of state?.operators ?? []) {
      await this.#try(checkpoint.path, `${name}: ${operator}`, async () => {
        for await (const _ of state?.scan(operator) ?? []) this.#entries++;
      });
    }
    await state?.close();
  }

  /** What cannot be read is a problem of `path`, unless the file system itself is away. */
  async #try<T>(path: string, user: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const { kind, message, details } = MillraceError.from(error);
      if (kind === 'retry') throw error;
      const named = details['path'] ?? details['file'];
      this.#problem(typeof named === 'string' ? named : path, message, user);
      return undefined;
    }
  }

  #problem(path: string, what: string, user: string): void {
    const known = this.#problems.get(path);
    if (known === undefined) this.#problems.set(path, { what, affects: new Set([user]) });
    else known.affects.add(user);
  }

  /** Drops what concerns only checkpoints and pins that are gone by now: a running job goes on. */
  async #stillTrue(): Promise<Problem[]> {
    const problems = [...this.#problems].map(([path, { what, affects }]) => ({ path, what, affects: [...affects] }));
    if (problems.length === 0 || this.#record === undefined) return problems;
    const record = await this.#jobs.findRecord(this.#job).catch(() => this.#record);
    const then = checkpointsOf(this.#record).map((checkpoint) => nameOf(checkpoint));
    const now = new Set(record === undefined ? [] : checkpointsOf(record).map((checkpoint) => nameOf(checkpoint)));
    const gone = then.filter((name) => !now.has(name));
    const isGone = (user: string): boolean => gone.some((name) => user === name || user.startsWith(`${name}: `));
    return problems
      .map((problem) => ({ ...problem, affects: problem.affects.filter((user) => !isGone(user)) }))
      .filter(({ affects }) => affects.length > 0);
  }
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}
