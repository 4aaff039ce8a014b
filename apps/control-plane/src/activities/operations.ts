import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import type {
  CheckpointEntry,
  CheckpointList,
  JobInput,
  JobRecord,
  JobSettings,
  Json,
  StartFrom,
} from '@millrace/proto/control';
import {
  deleted,
  findStart,
  forgotten,
  liveCheckpoints,
  noCheckpoint,
  savepointReleased,
} from '../record/transitions.ts';
import type { ControlStorage } from '../storage/control-storage.ts';
import type { FailPoint } from './fail-points.ts';
import { jobSettings, parseJobInput } from './job-input.ts';
import type {
  CheckedOperation,
  CheckName,
  CleanupPart,
  OperationActivities,
  StartPlan,
  SteerInput,
} from './operation-contract.ts';
import { type OperationInput, parseOperation } from './operation-input.ts';
import type { StepScope } from './scope.ts';
import { asActivity, type ShellDeps } from './shell.ts';
import type { Steering } from './steering.ts';

export interface OperationDeps extends ShellDeps {
  readonly storage: ControlStorage;
  readonly steering: Steering;
  readonly failPoint: FailPoint;
  readonly clock: Clock;
}

/** Times that a change of a record is tried against newer generations. */
const triesMax = 5;
const pollMs = 100;
const nothing: CleanupPart = {
  checkpointsDropped: 0,
  filesRemoved: 0,
  objectsRemoved: 0,
  bytesFreed: 0,
  filesPinned: 0,
  failed: 0,
};

/** The activities of operations, ready for a worker. */
export function operationActivities(deps: OperationDeps): OperationActivities {
  const { steering } = deps;
  const work = new Operations(deps);
  return {
    checkOperation: asActivity(({ name, input }) => work.check(name, input), deps),
    steerJob: asActivity((input, scope) => work.steer(input, scope), deps),
    planRestore: asActivity((input) => work.planRestore(input), deps),
    forkJob: asActivity(({ input, claim }) => work.fork(input, claim), deps),
    listCheckpoints: asActivity(({ id }) => work.list(id), deps),
    endJob: asActivity(({ id }, scope) => work.endJob(id, scope), deps),
    startJob: asActivity(({ input, claim }) => steering.start(input, claim), deps),
    awaitJob: asActivity(({ id }, scope) => work.awaitJob(id, scope), deps),
    releaseSavepoint: asActivity(({ id, savepoint }) => work.release(id, savepoint), deps),
    markDeleted: asActivity((input) => work.markDeleted(input), deps),
    eraseJob: asActivity(({ id }) => work.erase(id), deps),
    expireCheckpoints: asActivity(({ id }) => work.expire(id), deps),
    sweepJob: asActivity(({ id, graceMs }) => work.sweep(id, graceMs), deps),
    scheduleCleanup: asActivity(({ id, everyMs }) => steering.scheduleCleanup(id, everyMs), deps),
  };
}

/** These need no running job, but its state. */
const recordOnly: ReadonlySet<CheckName> = new Set(['ttlCleanup', 'release', 'deleteJob', 'checkpoints']);

/** As plain functions of their inputs. */
export class Operations {
  readonly #deps: OperationDeps;

  constructor(deps: OperationDeps) {
    this.#deps = deps;
  }

  async check(name: CheckName, input: Json | undefined): Promise<CheckedOperation> {
    const { job: id, ...order } = parseOperation(name, input);
    const record = await this.#deps.storage.readRecord(id);
    if (recordOnly.has(name)) {
      if (record === undefined) throw unknownJob(id);
      return { id, order: order as CheckedOperation['order'] };
    }
    const state = await this.#deps.steering.find(id);
    if (state === 'unknown' && record === undefined) throw unknownJob(id);
    if (state !== 'running') {
      throw new MillraceError('job-not-running', `Field "job": job "${id}" does not run.`, {
        details: { field: 'job', id },
      });
    }
    const { savepoint, name: named } = order as { readonly savepoint?: string; readonly name?: string };
    mustBeFree(record, savepoint ?? named, savepoint === undefined ? 'name' : 'savepoint');
    return { id, order: order as CheckedOperation['order'] };
  }

  steer({ id, name, order, updateId }: SteerInput, scope: StepScope): Promise<Json> {
    return this.#deps.steering.update(id, { name, order, updateId }, scope.signal);
  }

  async planRestore(input: Json | undefined): Promise<StartPlan> {
    const wanted = parseOperation('restore', input);
    const record = await this.#record(wanted.job);
    const start = startOf(record, wanted.from);
    const from: StartFrom =
      typeof wanted.from === 'string'
        ? { savepoint: wanted.from, claim: wanted.claim === true }
        : { checkpoint: start.checkpoint };
    const plan = { ...inputOf(record, start, wanted), id: record.id, from };
    // What is wrong with it is to be said before the running job is ended.
    jobSettings(parseJobInput(plan as unknown as Json), record);
    const isRunning = (await this.#deps.steering.find(record.id)) === 'running';
    return { input: plan, path: start.path, checkpoint: start.checkpoint, isRunning, bytesLinked: 0 };
  }

  async fork(input: Json | undefined, claim: string): Promise<StartPlan> {
    const { storage, steering, failPoint } = this.#deps;
    const wanted = parseOperation('fork', input);
    const { id: child } = wanted;
    if (child === wanted.job) throw exists(child);
    const parent = await this.#record(wanted.job);
    const known = await storage.readRecord(child);
    const isOurs = known?.fork?.claim === claim;
    if (!isOurs) {
      if (known !== undefined && known.deleted !== true) throw exists(child);
      if ((await steering.find(child)) === 'running') throw exists(child);
    }
    const start = isOurs && known?.base !== undefined ? findParents(parent, known) : startOf(parent, wanted.from);
    const plan: JobInput = { ...inputOf(parent, start, wanted), id: child, from: 'latest' };
    const settings = jobSettings(parseJobInput(plan as unknown as Json), undefined);
    const { bytesLinked } = await storage.fork({ parent, start, child, claim, settings });
    await failPoint('fork.after-record');
    return { input: plan, path: start.path, checkpoint: start.checkpoint, isRunning: false, bytesLinked };
  }

  async endJob(id: string, scope: StepScope): Promise<void> {
    const { steering } = this.#deps;
    await steering.cancel(id);
    await steering.ended(id, scope.signal);
  }

  async awaitJob(id: string, scope: StepScope): Promise<void> {
    const { steering, clock } = this.#deps;
    for (;;) {
      const { state, lastFailure, details } = await steering.status(id);
      if (state === 'running' || state === 'finished' || state === 'rescaling' || state === 'stopping') return;
      if (state === 'failed' || state === 'cancelled' || state === 'stopped') {
        throw new MillraceError('job-failed', `Job "${id}" ended at once: ${lastFailure ?? details}`, {
          details: { id },
        });
      }
      await sleep(clock, pollMs, scope.signal);
    }
  }

  async release(id: string, savepoint: string): Promise<void> {
    await this.#update(id, (record) => {
      if (record.savepoints?.some((entry) => entry.name === savepoint) !== true) return record;
      return savepointReleased(record, savepoint);
    });
  }

  async markDeleted(input: Parameters<OperationActivities['markDeleted']>[0]): Promise<void> {
    const { storage, steering, failPoint } = this.#deps;
    const { id, claim } = input;
    if ((await steering.find(id)) === 'running') {
      const words = `Field "job": job "${id}" is running. Stop or cancel it first.`;
      throw new MillraceError('operation-refused', words, { details: { field: 'job', id } });
    }
    const record = await this.#record(id);
    const names = (record.savepoints ?? []).map((entry) => entry.name);
    if (names.length > 0 && !input.savepoints) {
      const words = `Field "savepoints": job "${id}" has the savepoints ${names.join(', ')}. Release them, or say "savepoints": true to delete them with it.`;
      throw new MillraceError('operation-refused', words, { details: { field: 'savepoints', id } });
    }
    await storage.claimRecord(id, claim, (current, generation) => deleted(current ?? record, generation));
    await failPoint('delete.after-record');
  }

  async erase(id: string): Promise<CleanupPart> {
    const { storage, steering } = this.#deps;
    const { filesRemoved, bytesFreed, filesPinned, failed } = await storage.erase(id);
    await steering.unscheduleCleanup(id);
    if (failed > 0) {
      throw new MillraceError('rpc-unavailable', `${failed} removals failed; they are tried again.`, {
        details: { id, failed },
      });
    }
    return { ...nothing, filesRemoved, bytesFreed, filesPinned, failed };
  }

  async expire(id: string): Promise<CleanupPart> {
    const { storage } = this.#deps;
    const record = await storage.readRecord(id);
    if (record === undefined || record.dropping.length === 0) return nothing;
    const gone = await storage.drop(id, record.dropping.toReversed(), liveCheckpoints(record));
    const owner = { id, generation: record.generation };
    if (gone.length > 0) await storage.updateRecord(owner, (current) => forgotten(current, owner, gone));
    await storage.collectRecord(id);
    return { ...nothing, checkpointsDropped: gone.length, failed: record.dropping.length - gone.length };
  }

  async sweep(id: string, graceMs: number): Promise<CleanupPart> {
    const report = await this.#deps.storage.sweep(id, graceMs);
    if (report === undefined) return nothing;
    const { filesRemoved, objectsRemoved, bytesFreed, failed } = report;
    return { ...nothing, filesRemoved, objectsRemoved, bytesFreed, failed };
  }

  async list(id: string): Promise<CheckpointList> {
    const record = await this.#record(id);
    const retained = new Set(record.checkpoints.map((entry) => entry.path));
    const checkpoints = liveCheckpoints(record).map((entry) => ({
      checkpoint: entry.checkpoint,
      generation: entry.generation,
      parallelism: entry.parallelism,
      createdMs: entry.createdMs,
      bytesPut: entry.bytesPut,
      bytesLinked: entry.bytesLinked,
      path: entry.path,
      savepoints: (record.savepoints ?? []).flatMap((one) => (one.path === entry.path ? [one.name] : [])),
      retained: retained.has(entry.path),
    }));
    return { id, checkpoints };
  }

  async #record(id: string): Promise<JobRecord> {
    const record = await this.#deps.storage.readRecord(id);
    if (record === undefined || record.deleted === true) throw unknownJob(id);
    return record;
  }

  /** A change by nobody's attempt: whichever generation is the newest keeps on being it. */
  async #update(id: string, change: (record: JobRecord) => JobRecord): Promise<JobRecord> {
    for (let tries = 1; ; tries++) {
      const { generation } = await this.#record(id);
      try {
        return await this.#deps.storage.updateRecord({ id, generation }, (record) => change(record as JobRecord));
      } catch (error) {
        if (MillraceError.from(error).kind !== 'fenced' || tries >= triesMax) throw error;
      }
    }
  }
}

function startOf(record: JobRecord, from: number | string | undefined): CheckpointEntry {
  const wanted: StartFrom =
    from === undefined ? 'latest' : typeof from === 'number' ? { checkpoint: from } : { savepoint: from };
  const start = findStart(record, wanted);
  if (start === undefined) throw noCheckpoint(record, wanted);
  return start;
}

/** The checkpoint that a fork that is being repeated has taken. */
function findParents(parent: JobRecord, child: JobRecord): CheckpointEntry {
  return startOf(parent, child.fork?.checkpoint);
}

/** The input of a job's last run, with what is to be different. */
function inputOf(
  record: JobRecord,
  start: CheckpointEntry,
  changed: Pick<OperationInput<'restore'>, 'parallelism' | 'options' | 'allowDroppedState'>,
): JobInput {
  const { parallelism, options, allowDroppedState } = changed;
  const { settings } = record;
  return {
    ...(settings === undefined ? {} : repeated(settings)),
    job: record.job,
    maxParallelism: record.maxParallelism,
    parallelism: parallelism ?? settings?.parallelism ?? start.parallelism,
    options: { ...settings?.options, ...options },
    ...(allowDroppedState === undefined ? {} : { allowDroppedState }),
  };
}

function repeated(settings: JobSettings): Partial<JobInput> {
  const { checkpointIntervalMs, checkpointsRetained, failuresMax, roundTimeoutMs, overtakeAfterMs, compaction } =
    settings;
  const mode = overtakeAfterMs === undefined ? 'aligned' : overtakeAfterMs === 0 ? 'unaligned' : 'aligned-timeout';
  return {
    checkpointIntervalMs,
    checkpointsRetained,
    failuresMax,
    roundTimeoutMs,
    checkpointMode: mode,
    ...(mode === 'aligned-timeout' && overtakeAfterMs !== undefined ? { alignTimeoutMs: overtakeAfterMs } : {}),
    ...(compaction === undefined ? {} : { compaction }),
  };
}

function mustBeFree(record: JobRecord | undefined, name: string | undefined, field: string): void {
  if (name === undefined || record?.savepoints?.some((entry) => entry.name === name) !== true) return;
  const words = `Field "${field}": job "${record.id}" has a savepoint "${name}". Choose another name, or release it.`;
  throw new MillraceError('savepoint-exists', words, { details: { field } });
}

function unknownJob(id: string): MillraceError {
  return new MillraceError('job-not-found', `Field "job": there is no job "${id}".`, { details: { field: 'job', id } });
}

function exists(id: string): MillraceError {
  const words = `Field "id": there is a job "${id}", or state of one. Choose another id.`;
  return new MillraceError('job-exists', words, { details: { field: 'id', id } });
}
