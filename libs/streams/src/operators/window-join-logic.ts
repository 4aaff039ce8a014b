import { array, type Codec, struct } from '@millrace/state';
import type { JoinKind, WindowJoinSpec } from '../api/joins.ts';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import type { FixedWindows } from '../api/windows.ts';
import { windowLogic } from './window-logic.ts';

interface Sides {
  readonly left: unknown[];
  readonly right: unknown[];
}

/**
 * Gathers both sides of a key and window, as a window over their union would, and emits the list of all pairs when the
 * window is over. A window fires once: late records go to the side outputs, so the result needs no retraction.
 */
export function windowJoinLogic<K, L, R, U, M extends JoinKind>(
  windows: FixedWindows,
  spec: WindowJoinSpec<K, L, R, U, M>,
): KeyedLogic {
  const { kind = 'inner' as JoinKind } = spec;
  const gather = windowLogic<K, readonly [number, unknown], Sides, U[]>(
    windows,
    {},
    {
      accumulator: struct({ left: array(spec.left), right: array(spec.right) }) as unknown as Codec<Sides>,
      output: array(spec.output) as Codec<U[]>,
      create: () => ({ left: [], right: [] }),
      add: (sides, [input, record]) => {
        (input === 0 ? sides.left : sides.right).push(record);
        return sides;
      },
      result: ({ left, right }, key, window) => {
        const pair = (l: unknown, r: unknown): U => spec.pair(l as never, r as never, key, window);
        if (right.length === 0) return kind === 'left' || kind === 'full' ? left.map((l) => pair(l, undefined)) : [];
        if (left.length === 0) return kind === 'right' || kind === 'full' ? right.map((r) => pair(undefined, r)) : [];
        return left.flatMap((l) => right.map((r) => pair(l, r)));
      },
    },
  );
  return {
    ...gather,
    lateByInput: [spec.late?.left?.name, spec.late?.right?.name],
    onRecord: (record, input, ctx) => gather.onRecord([input, record], input, ctx),
    onTimer: (timeMs, ctx) => gather.onTimer?.(timeMs, oneByOne(ctx)),
    onProcessingTimer: (timeMs, ctx) => gather.onProcessingTimer?.(timeMs, oneByOne(ctx)),
  };
}

/** The same context, to which a list is emitted item by item. */
function oneByOne(ctx: LogicContext): LogicContext {
  const emit: LogicContext['emit'] = (list, timestampMs) => {
    for (const value of list as readonly unknown[]) ctx.emit(value, timestampMs);
  };
  return new Proxy(ctx, {
    get: (target, name) => {
      if (name === 'emit') return emit;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
