import type { Random } from '@millrace/kernel';
import { AsyncExecutionController } from '../controller.ts';
import type { Epoch } from '../epoch.ts';
import { Observer } from './observer.ts';
import type { Plan, Program, Step } from './program.ts';
import { Scheduler } from './scheduler.ts';

class Planned extends Error {}

export interface Outcome {
  readonly faults: readonly string[];
  readonly failed: boolean;
}

/** Runs the program on a real controller under the scheduler. */
export async function runProgram(program: Program, random: Random): Promise<Outcome> {
  const scheduler = new Scheduler(random);
  const seen = new Observer();
  const serial = program.watermarks === 'serial';
  const limit = program.inFlightLimit;
  let ended: unknown;

  const aec: AsyncExecutionController<number, Plan> = new AsyncExecutionController({
    inFlightLimit: limit,
    watermarks: program.watermarks,
    watermarksWaitingMax: program.watermarksWaitingMax,
    handle(plan: Plan, _key: number, epoch: Epoch) {
      seen.starts(plan, serial);
      const before = seen.store.get(plan.key) ?? [];
      spawn(plan, epoch, 0);
      if (plan.failsAt === 0) throw new Planned();
      if (plan.awaits > 0) return continued(plan, epoch, before);
      return apply(plan, before);
    },
    onFailure(error: unknown) {
      seen.failures++;
      ended = error;
    },
  });

  async function continued(plan: Plan, epoch: Epoch, before: readonly number[]): Promise<void> {
    for (let n = 1; n <= plan.awaits; n++) {
      await scheduler.sleep();
      spawn(plan, epoch, n);
      if (plan.failsAt === n) throw new Planned();
    }
    apply(plan, before);
  }

  function apply(plan: Plan, before: readonly number[]): void {
    seen.store.set(plan.key, [...before, plan.id]);
    seen.finishes(plan);
  }

  function spawn(parent: Plan, epoch: Epoch, beforeAwait: number): void {
    for (const { plan } of parent.spawns.filter((each) => each.beforeAwait === beforeAwait)) {
      if (aec.failure === undefined) seen.add(plan, 'spawned', seen.epochOf(parent));
      aec.derive(plan.key, plan, epoch);
    }
  }

  function watermark(step: Step & { kind: 'watermark' }): void | Promise<void> {
    const number = seen.arrived++;
    const fire = (plan: Plan, epoch: Epoch): void => {
      if (aec.failure === undefined) seen.add(plan, 'timer', number);
      aec.derive(plan.key, plan, epoch);
    };
    const inPortions = async (epoch: Epoch): Promise<void> => {
      for (const plan of step.timers) {
        for (let room = aec.room(); room !== undefined; room = aec.room()) await room;
        fire(plan, epoch);
        if (plan.id % 2 === 0) await scheduler.sleep();
      }
      if (step.fails === 'advance') throw new Planned();
    };
    const atOnce = (epoch: Epoch): void => {
      for (const plan of step.timers) fire(plan, epoch);
      if (step.fails === 'advance') throw new Planned();
    };
    const emit = (): void => {
      seen.emits(number);
      if (step.fails === 'emit') throw new Planned();
    };
    return aec.watermark(emit, step.portions ? inPortions : atOnce);
  }

  async function drain(): Promise<void> {
    for (let wait = aec.drain(); wait !== undefined; wait = aec.drain()) await wait;
    seen.drained();
    seen.check(aec.inFlight === 0 && aec.buffered === 0, 'A5', `drained with ${aec.inFlight} in flight`);
  }

  function take(step: Step): void | Promise<void> {
    switch (step.kind) {
      case 'record':
        seen.add(step.plan, 'input');
        return aec.admit(step.plan.key, step.plan);
      case 'processing-timer':
        seen.add(step.plan, 'spawned');
        return aec.derive(step.plan.key, step.plan);
      case 'watermark':
        return watermark(step);
      case 'mark': {
        const number = seen.arrived++;
        return aec.mark(() => seen.emits(number));
      }
      case 'drain':
        return drain();
      case 'pause':
        return scheduler.sleep();
    }
  }

  async function input(): Promise<void> {
    try {
      for (const step of program.steps) {
        const wait = take(step);
        if (wait !== undefined) await wait;
      }
      await drain();
    } catch (error) {
      seen.check(error === ended, 'A4', `the input got ${String(error)}`);
    }
  }

  let turns = 0;
  const planned = new Planned();
  await scheduler.run(input(), () => {
    const overdraft = seen.derivedUnfinished;
    seen.check(aec.inFlight <= limit + overdraft, 'A2', `${aec.inFlight} in flight, ${overdraft} of them derived`);
    if (turns++ === program.failsAfterTurns) aec.fail(planned);
  });

  const failed = aec.failure !== undefined;
  if (failed) {
    seen.check(seen.failures === 1, 'A4', `onFailure was called ${seen.failures} times`);
    seen.check(aec.failure instanceof Planned, 'A4', 'failed with something else than planned');
    seen.check(aec.inFlight === 0, 'A4', `${aec.inFlight} in flight when all handlers have settled`);
  }
  return { faults: seen.faults, failed };
}
