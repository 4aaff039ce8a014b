import type { Plan, Program } from './program.ts';

/** What one thread without a controller makes of a program: each record to its end, with all that follows from it. */
export interface Reference {
  /** Of each key, in order. */
  readonly applied: ReadonlyMap<number, readonly number[]>;
  /** What is emitted between one watermark (or mark) and the next. */
  readonly segments: readonly (readonly number[])[];
}

/** For programs of which the promises leave no order open within a key (`ProgramOptions.exact`). */
export function referenceOf(program: Program): Reference {
  const applied = new Map<number, number[]>();
  const segments: number[][] = [[]];
  const run = (first: Plan): void => {
    const family = [first];
    for (const plan of family) {
      applied.set(plan.key, [...(applied.get(plan.key) ?? []), plan.id]);
      segments.at(-1)?.push(plan.id);
      family.push(...plan.spawns.toSorted((a, b) => a.beforeAwait - b.beforeAwait).map((spawned) => spawned.plan));
    }
  };
  for (const step of program.steps) {
    if (step.kind === 'record' || step.kind === 'processing-timer') run(step.plan);
    if (step.kind === 'watermark') for (const timer of step.timers) run(timer);
    if (step.kind === 'watermark' || step.kind === 'mark') segments.push([]);
  }
  return { applied, segments };
}
