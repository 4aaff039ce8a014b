import type { Random } from '@millrace/kernel';
import { AsyncExecutionController } from '../controller.ts';
import type { Epoch } from '../epoch.ts';
import { Observer } from './observer.ts';
import type { Plan, Program, Step } from './program.ts';
import { Scheduler } from './scheduler.ts';

class Planned extends Error {}

/** Where an attempt begins: state and output of all steps before `step`. */
export interface Checkpoint {
  readonly step: number;
  readonly store: ReadonlyMap<number, readonly number[]>;
  /** Ids of what was applied, `|` for a watermark or mark. */
  readonly output: readonly (number | '|')[];
}

export const emptyStart: Checkpoint = { step: 0, store: new Map(), output: [] };

export interface RunOptions {
  readonly from?: Checkpoint;
  /** Plans whose failure has happened: each fails once. */
  readonly spent?: Set<number>;
}

export interface Outcome {
  readonly faults: readonly string[];
  readonly failed: boolean;
  /** Of the newest barrier; of the end, when it has not failed. */
  readonly checkpoint: Checkpoint;
}

/** Runs the program on a real controller under the scheduler. */
export async function runProgram(program: Program, random: Random, options: RunOptions = {}): Promise<Outcome> {
  const { from = emptyStart, spent = new Set() } = options;
  const scheduler = new Scheduler(random, program.order);
  const seen = new Observer(from.store);
  const output = [...from.output];
  let checkpoint = from;
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
      failAt(plan, 0);
      if (plan.awaitsMs.length > 0) return continued(plan, epoch, before);
      return apply(plan, before);
    },
    onFailure(error: unknown) {
      seen.failures++;
      ended = error;
    },
  });

  async function continued(plan: Plan, epoch: Epoch, before: readonly number[]): Promise<void> {
    for (const [n, latencyMs] of plan.awaitsMs.entries()) {
      await scheduler.sleep(latencyMs);
      spawn(plan, epoch, n + 1);
      failAt(plan, n + 1);
    }
    apply(plan, before);
  }

  function failAt(plan: Plan, n: number): void {
    if (plan.failsAt !== n || spent.has(plan.id)) return;
    spent.add(plan.id);
    throw new Planned();
  }

  function apply(plan: Plan, before: readonly number[]): void {
    output.push(plan.id);
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
    const failStep = (at: 'advance' | 'emit'): void => {
      // Ids of plans are not negative.
      const failure = -1 - program.steps.indexOf(step);
      if (step.fails !== at || spent.has(failure)) return;
      spent.add(failure);
      throw new Planned();
    };
    const fire = (plan: Plan, epoch: Epoch): void => {
      if (aec.failure === undefined) seen.add(plan, 'timer', number);
      aec.derive(plan.key, plan, epoch);
    };
    const inPortions = async (epoch: Epoch): Promise<void> => {
      for (const plan of step.timers) {
        for (let room = aec.room(); room !== undefined; room = aec.room()) await room;
        fire(plan, epoch);
        if (plan.id % 2 === 0) await scheduler.sleep(plan.id % 7);
      }
      failStep('advance');
    };
    const atOnce = (epoch: Epoch): void => {
      for (const plan of step.timers) fire(plan, epoch);
      failStep('advance');
    };
    const emit = (): void => {
      seen.emits(number);
      output.push('|');
      failStep('emit');
    };
    return aec.watermark(emit, step.portions ? inPortions : atOnce);
  }

  /** A barrier before step `next`. */
  async function drain(next: number): Promise<void> {
    for (let wait = aec.drain(); wait !== undefined; wait = aec.drain()) await wait;
    seen.drained();
    seen.check(aec.inFlight === 0 && aec.buffered === 0, 'A5', () => `drained with ${aec.inFlight} in flight`);
    checkpoint = { step: next, store: new Map(seen.store), output: [...output] };
  }

  function take(step: Step, index: number): void | Promise<void> {
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
        return aec.mark(() => {
          seen.emits(number);
          output.push('|');
        });
      }
      case 'drain':
        return drain(index + 1);
      case 'pause':
        return scheduler.sleep(10);
    }
  }

  async function input(): Promise<void> {
    try {
      for (let at = from.step; at < program.steps.length; at++) {
        const wait = take(program.steps[at] as Step, at);
        if (wait !== undefined) await wait;
      }
      await drain(program.steps.length);
    } catch (error) {
      seen.check(error === ended, 'A4', () => `the input got ${String(error)}`);
    }
  }

  let turns = 0;
  const planned = new Planned();
  await scheduler.run(input(), () => {
    const overdraft = seen.derivedUnfinished;
    seen.check(
      aec.inFlight <= limit + overdraft,
      'A2',
      () => `${aec.inFlight} in flight, ${overdraft} of them derived`,
    );
    if (turns++ === program.failsAfterTurns) aec.fail(planned);
  });

  const failed = aec.failure !== undefined;
  if (failed) {
    seen.check(seen.failures === 1, 'A4', () => `onFailure was called ${seen.failures} times`);
    seen.check(aec.failure instanceof Planned, 'A4', () => 'failed with something else than planned');
    seen.check(aec.inFlight === 0, 'A4', () => `${aec.inFlight} in flight when all handlers have settled`);
  }
  return { faults: seen.faults, failed, checkpoint };
}
