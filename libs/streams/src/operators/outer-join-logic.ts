import { bool, type Codec, type MapHandle, map, string, struct } from '@millrace/state';
import type { Change } from '../api/change.ts';
import type { JoinSide, OuterJoinSpec, OuterKind } from '../api/joins.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import { ttlOption } from './join-logic.ts';

interface Waiting {
  readonly record: unknown;
  /** It is in the result without a partner. */
  readonly alone: boolean;
}

type Side = MapHandle<string, Waiting>;

/**
 * Outer join by key, as changes: at every moment the inserted and not retracted rows are the join of the records at hand
 * (of those with one id, the last). A record without a partner is inserted alone and retracted when its first partner
 * comes; a record that replaces another one takes the pairs of that one back. What has outlived its time to live
 * is no partner any more and is not retracted. Whether a record stands alone is stored with it, so that exactly
 * what was inserted is retracted, whatever has expired meanwhile.
 */
export function outerJoinLogic<M extends OuterKind, K, L, R, U>(spec: OuterJoinSpec<M, K, L, R, U>): KeyedLogic {
  const ttl = ttlOption(spec);
  const sides = [spec.left, spec.right] as readonly JoinSide<unknown>[];
  const idOf = sides.map((side) => side.id ?? ((): string => ''));
  const keepsAlone = [spec.kind !== 'right', spec.kind !== 'left'] as const;
  const change = (op: Change<U>['op'], input: number, [own, partner]: readonly unknown[], ctx: LogicContext): void => {
    const [left, right] = input === 0 ? [own, partner] : [partner, own];
    const value = spec.pair(left as never, right as never, ctx.key as K);
    ctx.emit({ op, value } satisfies Change<U>);
  };
  return {
    shape: {
      left: map(string, waiting(spec.left.codec), { ttl }),
      right: map(string, waiting(spec.right.codec), { ttl }),
    },
    async onRecord(record, input, ctx) {
      const maps = [ctx.state['left'], ctx.state['right']] as unknown as readonly Side[];
      const [own, others] = [maps[input] as Side, maps[1 - input] as Side];
      const id = (idOf[input] as (record: unknown) => string)(record);
      const old = await own.get(id);
      if (old?.alone === true) change('retract', input, [old.record, undefined], ctx);
      let alone = true;
      for await (const [otherId, other] of others.entries()) {
        alone = false;
        if (old !== undefined) change('retract', input, [old.record, other.record], ctx);
        if (other.alone) {
          change('retract', 1 - input, [other.record, undefined], ctx);
          others.set(otherId, { record: other.record, alone: false });
        }
        change('insert', input, [record, other.record], ctx);
      }
      alone &&= keepsAlone[input] as boolean;
      if (alone) change('insert', input, [record, undefined], ctx);
      own.set(id, { record, alone });
    },
  };
}

function waiting<T>(record: Codec<T>): Codec<Waiting> {
  return struct({ record, alone: bool }) as unknown as Codec<Waiting>;
}
