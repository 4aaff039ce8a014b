import { type Clock, type ErrorKind, errorToJson, MillraceError, type Timer } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import type { StepScope } from './scope.ts';

export interface ShellDeps {
  readonly clock: Clock;
  /** The span of the activity that runs now, for calls that leave this process. */
  readonly activeSpan: () => TraceContext | undefined;
}

const heartbeatMs = 1_000;

/** Repeating these cannot help: the input or the set-up has to change, or somebody newer is in charge. */
const final: ReadonlySet<ErrorKind> = new Set(['input', 'setup', 'fenced', 'cancelled']);
const finalCodes: ReadonlySet<string> = new Set(['runner-lost', 'checkpoint-incomplete', 'job-record-broken']);

/** A plain function as an activity: heartbeats while it runs, which
 * carry what is done already from one try to the next, cancellation as a signal, failures with code and kind. */
export function asActivity<I, O>(
  work: (input: I, scope: StepScope) => Promise<O>,
  deps: ShellDeps,
): (input: I) => Promise<O> {
  return async (input) => {
    const context = Context.current();
    const done = partsDone(context.info.heartbeatDetails);
    let timer: Timer | undefined;
    const heartbeat = (): void => context.heartbeat(...(done.size === 0 ? [] : [[...done]]));
    const beat = (): void => {
      heartbeat();
      timer = deps.clock.schedule(heartbeatMs, beat);
    };
    beat();
    try {
      return await work(input, { signal: context.cancellationSignal, parent: deps.activeSpan(), done });
    } catch (error) {
      if (context.cancellationSignal.aborted) throw new CancelledFailure('cancelled');
      heartbeat();
      throw toFailure(error);
    } finally {
      timer?.cancel();
    }
  };
}

/** What earlier tries of this activity left in their last heartbeat. */
function partsDone(details: unknown): Set<string> {
  return new Set(Array.isArray(details) ? details.filter((part) => typeof part === 'string') : []);
}

function toFailure(error: unknown): ApplicationFailure {
  const e = MillraceError.from(error);
  const { code, message, details } = errorToJson(e);
  return ApplicationFailure.create({
    message,
    type: code,
    nonRetryable: final.has(e.kind) || finalCodes.has(code),
    details: [{ code, kind: e.kind, message, details }],
    cause: e,
  });
}
