import type { JobHandle } from '@millrace/client';
import { isKind, MillraceError } from '@millrace/kernel';
import type { JobStatus, RoundResult } from '@millrace/proto';
import { formatBytes, formatCount, formatTime } from './format.ts';
import { fetchLiveFigures, type LiveFigures } from './live-figures.ts';
import type { Report } from './output.ts';

const pollIntervalMs = 500;

export interface WatchOptions {
  readonly handle: JobHandle;
  readonly console: string | undefined;
  readonly report: Report;
  /** Ends the watching, not the job. */
  readonly signal: AbortSignal;
}

/** Shows a job's progress until it ends; resolves with its last status. Aborted: rejects with the signal's reason. */
export async function watchJob(options: WatchOptions): Promise<JobStatus> {
  const { handle, report, signal } = options;
  let shownState = '';
  let before: { figures: LiveFigures; atMs: number } | undefined;
  for (;;) {
    signal.throwIfAborted();
    const status = await patientStatus(handle, report, signal);
    if (status.state !== shownState) {
      shownState = status.state;
      report.say(describeState(status), { event: 'state', ...stateData(status) });
    }
    if (
      status.state === 'finished' ||
      status.state === 'failed' ||
      status.state === 'stopped' ||
      status.state === 'cancelled'
    )
      return status;
    const figures = await fetchLiveFigures(options.console, status.id);
    const atMs = performance.now();
    if (figures !== undefined && status.state === 'running') {
      const seconds = before === undefined ? 0 : (atMs - before.atMs) / 1000;
      const rate =
        before === undefined || seconds <= 0 ? 0 : (figures.recordsRead - before.figures.recordsRead) / seconds;
      showLive(report, status, figures, Math.max(0, rate));
    }
    if (figures !== undefined) before = { figures, atMs };
    await pause(pollIntervalMs, signal);
  }
}

/** The job's status, however long Temporal or the control plane are away: the job itself goes on meanwhile. */
async function patientStatus(handle: JobHandle, report: Report, signal: AbortSignal): Promise<JobStatus> {
  let told = false;
  for (;;) {
    try {
      return await handle.status();
    } catch (error) {
      if (!isKind(error, 'retry') && !isKind(error, 'setup')) throw error;
      if (!told) report.note(`${error.message} The job goes on; waiting …`);
      told = true;
      await pause(pollIntervalMs, signal);
    }
  }
}

/** Passes when the job ended well; else throws what a command should fail with. */
export function requireFinished(status: JobStatus): void {
  if (status.state === 'finished' || status.state === 'stopped') return;
  if (status.state === 'cancelled') throw new MillraceError('cancelled', `Job ${status.id} was cancelled.`);
  throw new MillraceError('job-failed', `Job ${status.id} failed: ${status.lastFailure ?? 'no reason was recorded'}`);
}

function describeState(status: JobStatus): string {
  const generation = status.generation > 0 ? `, generation ${status.generation}` : '';
  const why = status.state === 'restarting' && status.lastFailure !== null ? `: ${status.lastFailure}` : '';
  const details = status.state === 'waiting-for-slots' || status.state === 'starting' ? ` — ${status.details}` : '';
  return `job ${status.id}: ${status.state}${generation}${why}${details}`;
}

function stateData(status: JobStatus): Record<string, unknown> {
  const { id, state, generation, parallelism, failures, lastFailure, lastCheckpoint } = status;
  return { id, state, generation, parallelism, failures, lastFailure, lastCheckpoint };
}

function showLive(report: Report, status: JobStatus, figures: LiveFigures, rate: number): void {
  const text = [
    `${formatCount(figures.recordsRead)} records`,
    `${formatCount(rate)}/s`,
    `watermark ${formatTime(figures.watermarkMs)}`,
    describeCheckpoint(status.lastCheckpoint),
  ].join(' · ');
  report.live(text, {
    event: 'progress',
    id: status.id,
    records: figures.recordsRead,
    recordsPerSecond: Math.round(rate),
    watermarkMs: figures.watermarkMs,
    lastCheckpoint: status.lastCheckpoint?.checkpoint ?? null,
  });
}

function describeCheckpoint(round: RoundResult | null): string {
  if (round === null) return 'no checkpoint yet';
  return `checkpoint ${round.checkpoint} (${round.durationMs} ms, ${formatBytes(round.bytesPut)})`;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
