import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import type { AttemptPlan } from '@millrace/proto';
import type { Logger } from '@millrace/telemetry';
import type { AttemptHandle } from './attempt-host.ts';
import type { AttemptReports, Ending } from './attempt-reports.ts';

export interface KeeperOptions {
  readonly plan: AttemptPlan;
  readonly handle: AttemptHandle;
  readonly reports: AttemptReports;
  readonly clock: Clock;
  readonly log: Logger;
  readonly heartbeatMs: number;
  /** The attempt goes on while Temporal is away, up to this long. */
  readonly unreachableMaxMs: number;
}

/**
 * Keeps one runner's part of an attempt in touch with Temporal: heartbeats, the end of the inputs, the attempt's end. While
 * Temporal is away the data plane goes on. It stops when it is told to, when Temporal no longer knows the attempt (it
 * was given up, and a newer generation may run), or when nobody has answered for `unreachableMaxMs`.
 */
export class AttemptKeeper {
  readonly #options: KeeperOptions;
  readonly #ended = new AbortController();
  #stopping: Ending | 'silent' | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Resolves when the attempt has ended here and its end was reported, or cannot be. Never rejects. */
  async run(): Promise<'finished' | 'failed'> {
    const { handle, plan, log } = this.#options;
    const beats = this.#heartbeat();
    const told = this.#tellInputsEnded();
    const ending = await handle.done.then(
      () => ({ kind: 'finished' }) as const,
      (error: unknown) => ({ kind: 'failed', error }) as const,
    );
    this.#ended.abort();
    await Promise.all([beats, told]);
    const report = ending.kind === 'failed' ? (this.#stopping ?? ending) : ending;
    log.info('attempt ended', {
      job: plan.id,
      generation: plan.generation,
      ending: report === 'silent' ? report : report.kind,
      ...(ending.kind === 'failed' ? { error: ending.error } : {}),
    });
    if (report !== 'silent') await this.#report(report);
    return ending.kind;
  }

  /** Ends the attempt from this side, with this error as its failure. */
  async stop(error: MillraceError): Promise<void> {
    await this.#stop({ kind: 'failed', error }, error);
  }

  async #stop(ending: Ending | 'silent', reason: MillraceError): Promise<void> {
    this.#stopping ??= ending;
    await this.#options.handle.cancel(reason);
  }

  async #heartbeat(): Promise<void> {
    const { reports, handle, clock, heartbeatMs, unreachableMaxMs, log, plan } = this.#options;
    let heardMs = clock.monotonicMs();
    while (await this.#pause(heartbeatMs)) {
      const answer = await reports.heartbeat(handle.progress());
      const now = clock.monotonicMs();
      if (answer === 'unreachable' && now - heardMs < unreachableMaxMs) continue;
      if (answer === 'taken') {
        heardMs = now;
        continue;
      }
      const words = {
        cancel: 'The attempt was cancelled.',
        gone: 'The attempt was given up: a newer one may run.',
        unreachable: `Temporal has not answered for ${Math.round(now - heardMs)} ms.`,
      }[answer];
      log.warn('attempt stops', { job: plan.id, generation: plan.generation, reason: words });
      await this.#stop(answer === 'cancel' ? { kind: 'cancelled' } : 'silent', new MillraceError('cancelled', words));
      return;
    }
  }

  async #tellInputsEnded(): Promise<void> {
    const { handle, reports, plan, heartbeatMs } = this.#options;
    const aborted = new Promise<'over'>((resolve) => {
      this.#ended.signal.addEventListener('abort', () => resolve('over'), { once: true });
    });
    if ((await Promise.race([handle.inputsEnded, aborted])) === 'over') return;
    while (!this.#ended.signal.aborted) {
      if ((await reports.inputsEnded(plan.checkpointLoopId)) !== 'unreachable') return;
      await this.#pause(heartbeatMs);
    }
  }

  /** Reports the end until Temporal has heard it. */
  async #report(ending: Ending): Promise<void> {
    const { reports, clock, heartbeatMs, unreachableMaxMs } = this.#options;
    const untilMs = clock.monotonicMs() + unreachableMaxMs;
    while ((await reports.end(ending)) === 'unreachable' && clock.monotonicMs() < untilMs)
      await sleep(clock, heartbeatMs);
  }

  /** False when the attempt ended meanwhile. */
  async #pause(ms: number): Promise<boolean> {
    try {
      await sleep(this.#options.clock, ms, this.#ended.signal);
      return true;
    } catch {
      return false;
    }
  }
}
