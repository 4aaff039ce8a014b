import type { Operator } from '../runtime/operator.ts';

/** A failure that a test has asked for. */
export interface PlannedFailure {
  /** Uid. */
  readonly operator: string;
  /** Records until then, over all subtasks; undefined: at a checkpoint. */
  recordsLeft: number | undefined;
  readonly error: Error;
}

/** The operator, which fails when that is planned. */
export function failing(uid: string, operator: Operator, planned: () => readonly PlannedFailure[]): Operator {
  const own = (): readonly PlannedFailure[] => planned().filter((one) => one.operator === uid);
  const record = operator.record.bind(operator);
  const snapshot = operator.snapshot.bind(operator);
  return Object.assign(operator, {
    record: (...args: Parameters<Operator['record']>) => {
      for (const one of own()) {
        if (one.recordsLeft !== undefined && --one.recordsLeft === 0) throw one.error;
      }
      return record(...args);
    },
    snapshot: (...args: Parameters<Operator['snapshot']>) => {
      for (const one of own()) if (one.recordsLeft === undefined) throw one.error;
      return snapshot(...args);
    },
  });
}
