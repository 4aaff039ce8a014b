import { MillraceError } from '@millrace/kernel';
import type { TableSpec } from './store.ts';

/** Whether a table's generation is still the newest; cheap enough to ask on every call. */
export interface Claim {
  /** Throws `state-fenced` when a newer generation has opened the operator. */
  check(): void;
}

/** The newest generation that this process has seen of each operator: older ones stop here, before they do harm. */
export class Generations {
  readonly #newest = new Map<string, { generation: number }>();

  /** Makes `spec`'s generation the newest. Throws `state-fenced` when a newer one has been here. */
  claim(spec: TableSpec): Claim {
    const name = JSON.stringify([spec.job, spec.operator]);
    const newest = this.#newest.get(name) ?? { generation: spec.generation };
    const claim: Claim = {
      check: () => {
        if (spec.generation < newest.generation) throw fenced(spec, newest.generation);
      },
    };
    claim.check();
    newest.generation = spec.generation;
    this.#newest.set(name, newest);
    return claim;
  }
}

function fenced({ operator, generation }: TableSpec, newest: number): MillraceError {
  const message = `generation ${generation} is over: ${newest} has opened ${operator}`;
  return new MillraceError('state-fenced', message, { details: { operator, newest } });
}
