import { MillraceError } from '@millrace/kernel';
import type { TableSpec } from '@millrace/state';

/** The newest generation that this process has seen of each operator: older ones stop here, before they do harm. */
export class Generations {
  readonly #newest = new Map<string, number>();

  /** Throws `state-fenced` when a newer generation has opened the operator. */
  claim(spec: TableSpec): void {
    this.check(spec);
    this.#newest.set(nameOf(spec), spec.generation);
  }

  check(spec: TableSpec): void {
    const newest = this.#newest.get(nameOf(spec)) ?? 0;
    if (spec.generation >= newest) return;
    const message = `generation ${spec.generation} is over: ${newest} has opened ${spec.operator}`;
    throw new MillraceError('state-fenced', message, { details: { operator: spec.operator, newest } });
  }
}

function nameOf({ job, operator }: TableSpec): string {
  return JSON.stringify([job, operator]);
}
