import type { RoundInput, RoundResult } from '@millrace/proto/control';
import { CancellationScope, CancelledFailure, isCancellation } from '@temporalio/workflow';
import type { RoundStep } from '../activities/contract.ts';
import { endWith } from './failures.ts';
import { control, longControl } from './proxies.ts';
import { distinctRunners } from './runners.ts';

/** What the steps of a round are told. */
export function roundStep(input: Pick<RoundInput, 'plan' | 'checkpoint' | 'stop'>): RoundStep {
  const { plan, checkpoint, stop } = input;
  return {
    id: plan.id,
    generation: plan.generation,
    checkpoint,
    codeHash: plan.codeHash,
    parallelism: plan.parallelism,
    maxParallelism: plan.maxParallelism,
    runners: distinctRunners(plan.slots),
    ...(stop === true ? { stop } : {}),
  };
}

/**
 * One checkpoint in four steps. Each may be repeated: whoever dies between two of them, or inside one, another control
 * plane repeats the step. Only `register` makes the checkpoint exist; a round that ends before it leaves nothing that a
 * later one could meet. The caller aborts a round that fails.
 */
export async function checkpointRound(input: RoundInput): Promise<RoundResult> {
  const step = roundStep(input);
  const startMs = Date.now();
  const name = `checkpoint ${input.checkpoint}`;
  const whole = CancellationScope.current();
  try {
    return await CancellationScope.withTimeout(input.timeoutMs, async () => {
      await control.barrier.executeWithOptions({ summary: `${name}: barrier to ${step.runners.length} runner(s)` }, [
        step,
      ]);
      const drained = await longControl.drain.executeWithOptions({ summary: `${name}: drain and flush` }, [step]);
      await control.link.executeWithOptions({ summary: `${name}: hold ${drained.path}` }, [{ step, drained }]);
      await control.register.executeWithOptions(
        { summary: `${name}: commit${drained.last ? ', last of the job' : step.stop ? ', last of the attempt' : ''}` },
        [
          {
            step,
            drained,
            checkpointsRetained: input.checkpointsRetained,
            ...(input.savepoints === undefined ? {} : { savepoints: input.savepoints }),
          },
        ],
      );
      return {
        checkpoint: input.checkpoint,
        path: drained.path,
        durationMs: Date.now() - startMs,
        bytesPut: drained.bytesPut,
        bytesLinked: drained.bytesLinked,
        last: drained.last,
      };
    });
  } catch (error) {
    if (!isCancellation(error)) throw error;
    if (whole.consideredCancelled) throw new CancelledFailure('The attempt ended during the round');
    const message = `The round took longer than ${input.timeoutMs} ms`;
    throw endWith({ code: 'timeout', kind: 'retry', message, details: {} });
  }
}
