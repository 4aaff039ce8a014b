import type { Clock } from '@millrace/kernel';
import type { AttemptProgress } from '@millrace/proto';
import { signals } from '@millrace/proto';
import { toFailure } from '@millrace/temporal';
import { ActivityCancelledError, ActivityNotFoundError, type Client, WorkflowNotFoundError } from '@temporalio/client';

/** What Temporal says to a report: it was taken; the attempt is to stop; the attempt is over; nobody answered. */
export type Answer = 'taken' | 'cancel' | 'gone' | 'unreachable';

/** An attempt's end as it is reported. */
export type Ending =
  | { readonly kind: 'finished' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'cancelled' };

/** Reports of one `runAttempt` activity to Temporal, each a single try with a deadline. */
export interface AttemptReports {
  heartbeat(progress: AttemptProgress): Promise<Answer>;
  end(ending: Ending): Promise<Answer>;
  inputsEnded(checkpointLoopId: string): Promise<Answer>;
}

const deadlineMs = 2_000;

export class TemporalReports implements AttemptReports {
  readonly #client: Client;
  readonly #taskToken: Uint8Array;
  readonly #clock: Clock;

  constructor(client: Client, taskToken: Uint8Array, clock: Clock) {
    this.#client = client;
    this.#taskToken = taskToken;
    this.#clock = clock;
  }

  heartbeat(progress: AttemptProgress): Promise<Answer> {
    return this.#say(() => this.#client.activity.heartbeat(this.#taskToken, progress));
  }

  end(ending: Ending): Promise<Answer> {
    const { activity } = this.#client;
    switch (ending.kind) {
      case 'finished':
        return this.#say(() => activity.complete(this.#taskToken, null));
      case 'failed':
        return this.#say(() => activity.fail(this.#taskToken, toFailure(ending.error)));
      case 'cancelled':
        return this.#say(() => activity.reportCancellation(this.#taskToken));
    }
  }

  inputsEnded(checkpointLoopId: string): Promise<Answer> {
    return this.#say(() => this.#client.workflow.getHandle(checkpointLoopId).signal(signals.checkpointNow));
  }

  async #say(report: () => Promise<void>): Promise<Answer> {
    try {
      await this.#client.connection.withDeadline(this.#clock.nowMs() + deadlineMs, report);
      return 'taken';
    } catch (error) {
      if (error instanceof ActivityCancelledError) return 'cancel';
      if (error instanceof ActivityNotFoundError || error instanceof WorkflowNotFoundError) return 'gone';
      return 'unreachable';
    }
  }
}
