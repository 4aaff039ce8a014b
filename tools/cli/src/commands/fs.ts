import { graceMsDefault, type JobSurvey, surveyJob, type VerifyReport, verifyJob } from '@millrace/inspect';
import { MillraceError } from '@millrace/kernel';
import { formatBytes, formatTable, formatTime } from '../format.ts';
import { progressOf, type StorageContext } from './state.ts';

/** The wanted job, or all of them. */
async function jobIds({ jobs }: StorageContext, id: string | undefined): Promise<string[]> {
  const all = await jobs.list();
  if (id === undefined) return all;
  if (!all.includes(id)) await jobs.record(id);
  return [id];
}

async function survey({ jobs, report }: StorageContext, id: string): Promise<JobSurvey> {
  return await surveyJob(jobs, id, { graceMs: graceMsDefault, onProgress: progressOf(report) });
}

/** `millrace fs ls`: physical files, who holds each, and what nobody does. */
export async function listFileSystem(
  context: StorageContext,
  id: string | undefined,
  { orphans }: { readonly orphans: boolean },
): Promise<void> {
  const { report } = context;
  for (const job of await jobIds(context, id)) {
    const { files, holders } = await survey(context, job);
    const shown = orphans ? files.filter(({ verdict }) => verdict === 'orphan') : files;
    if (report.json) {
      if (!orphans) for (const holder of holders) report.say('', { event: 'holder', job, ...holder });
      for (const file of shown) report.say('', { event: 'file', job, ...file });
      continue;
    }
    report.say(`job ${job}`, {});
    if (!orphans && holders.length > 0) report.say(`${holderTable(holders)}\n`, {});
    const rows = shown.map(({ path, sizeBytes, modifiedMs, generation, holders: names, verdict }) => [
      path,
      formatBytes(sizeBytes),
      formatTime(modifiedMs),
      String(generation ?? ''),
      names.length === 0 ? verdict.toUpperCase() : names.join(', '),
    ]);
    const table = formatTable([['FILE', 'BYTES', 'WRITTEN (UTC)', 'GENERATION', 'HELD BY'], ...rows]);
    report.say(rows.length === 0 ? `No ${orphans ? 'orphans' : 'files'}.\n` : `${table}\n`, {});
  }
}

function holderTable(holders: JobSurvey['holders']): string {
  const rows = holders.map(({ name, files, logicalBytes, exclusiveBytes, foreignBytes }) => [
    name,
    String(files),
    formatBytes(logicalBytes),
    formatBytes(exclusiveBytes),
    formatBytes(foreignBytes),
  ]);
  return formatTable([['HOLDER', 'FILES', 'LOGICAL', 'OF IT ALONE', 'IN OTHER JOBS'], ...rows]);
}

/** `millrace fs du`: bytes by job. */
export async function diskUsage(context: StorageContext, id: string | undefined): Promise<void> {
  const { report } = context;
  const rows: string[][] = [];
  for (const job of await jobIds(context, id)) {
    const { files, holders, objectBytes, objects } = await survey(context, job);
    const bytesOf = (wanted: (file: (typeof files)[number]) => boolean): number =>
      files.reduce((sum, file) => sum + (wanted(file) ? file.sizeBytes : 0), 0);
    const usage = {
      job,
      files: files.length,
      physicalBytes: bytesOf(() => true),
      heldBytes: bytesOf(({ verdict }) => verdict === 'held'),
      orphanBytes: bytesOf(({ verdict }) => verdict === 'orphan'),
      waitingBytes: bytesOf(({ verdict }) => verdict === 'young' || verdict === 'maybe-in-use'),
      logicalBytes: holders.reduce((sum, holder) => sum + holder.logicalBytes, 0),
      foreignBytes: holders.reduce((most, holder) => Math.max(most, holder.foreignBytes), 0),
      objects,
      objectBytes,
    };
    if (report.json) report.say('', usage);
    const { physicalBytes, heldBytes, orphanBytes, waitingBytes, logicalBytes } = usage;
    const sizes = [physicalBytes, heldBytes, waitingBytes, orphanBytes, logicalBytes, usage.foreignBytes, objectBytes];
    rows.push([job, String(usage.files), ...sizes.map(formatBytes)]);
  }
  const head = ['JOB', 'FILES', 'PHYSICAL', 'HELD', 'WAITING', 'ORPHANS', 'LOGICAL', 'IN OTHER JOBS', 'METADATA'];
  if (!report.json) report.say(formatTable([head, ...rows]), {});
}

/** `millrace fs verify`: every checksum of every live file. Rejects with `state-damaged` when something is wrong. */
export async function verifyFileSystem(
  context: StorageContext,
  id: string | undefined,
  { deep }: { readonly deep: boolean },
): Promise<void> {
  const { jobs, report } = context;
  const damaged: string[] = [];
  for (const job of await jobIds(context, id)) {
    const tell = progressOf(report);
    const result = await verifyJob(jobs, job, {
      deep,
      onProgress: ({ files, filesTotal, bytes, bytesTotal }) => {
        const text = `job ${job}: ${files} of ${filesTotal} files, ${formatBytes(bytes)} of ${formatBytes(bytesTotal)}`;
        if (files < filesTotal) tell(text);
      },
    });
    report.say(verifyText(result), { event: 'verified', ...result });
    if (result.problems.length > 0) damaged.push(job);
  }
  if (damaged.length === 0) return;
  const message = `What is stored of ${damaged.map((job) => `job ${job}`).join(', ')} is damaged.`;
  throw new MillraceError('state-damaged', message, { details: { jobs: damaged.join(', ') } });
}

function verifyText({
  job,
  problems,
  checkpoints,
  holders,
  files,
  bytes,
  entries,
  tablesElsewhere,
}: VerifyReport): string {
  const read = entries > 0 ? `, ${entries} entries read` : '';
  const rest =
    tablesElsewhere > 0 ? `; ${tablesElsewhere} tables lie in a store of their own and were not checked` : '';
  const counts = `${checkpoints} checkpoints, ${holders} holders, ${files} files, ${formatBytes(bytes)}${read}${rest}`;
  const head = `job ${job}: ${problems.length === 0 ? 'sound' : `${problems.length} PROBLEMS`} (${counts})`;
  return [
    head,
    ...problems.map(({ path, what, affects }) => `  ${path}: ${what}\n    needed by ${affects.join(', ')}`),
  ].join('\n');
}
