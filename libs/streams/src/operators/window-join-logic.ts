import { MillraceError } from '@millrace/kernel';
import { type Codec, optional, struct } from '@millrace/state';
import type { WindowProcessSpec } from '../api/aggregate.ts';
import type { JoinKind, JoinWindows, WindowJoinSpec } from '../api/joins.ts';
import type { KeyedLogic } from '../api/process.ts';
import { anyWindowLogic } from './any-window-logic.ts';
import { buffered } from './window-contents.ts';

/** A record of one of the two sides. */
interface OneOf<L, R> {
  readonly left: L | undefined;
  readonly right: R | undefined;
}

/**
 * A window over the union of both sides: all its records are kept, each on its own, and all pairs are emitted when it is
 * over. A window emits once: late records go to the side outputs, so no result needs to be retracted.
 */
export function windowJoinLogic<K, L, R, U, M extends JoinKind>(
  windows: JoinWindows<L | R>,
  spec: WindowJoinSpec<K, L, R, U, M>,
): KeyedLogic {
  const { uid, kind = 'inner' as JoinKind } = spec;
  if (windows.time === 'processing' && spec.late !== undefined) {
    throw new MillraceError(
      'job-graph',
      `${uid ?? 'window-join'}: no record is late for windows of processing time; they take no late`,
    );
  }
  const records = struct({ left: optional(spec.left), right: optional(spec.right) }) as unknown as Codec<OneOf<L, R>>;
  const pairs: WindowProcessSpec<K, OneOf<L, R>, U> = {
    output: spec.output,
    process: (all, ctx) => {
      const lefts = all.flatMap(({ left }) => (left === undefined ? [] : [left]));
      const rights = all.flatMap(({ right }) => (right === undefined ? [] : [right]));
      const emit = (l: L | undefined, r: R | undefined): void =>
        ctx.emit(spec.pair(l as never, r as never, ctx.key, ctx.window));
      for (const l of lefts) for (const r of rights) emit(l, r);
      if (rights.length === 0 && (kind === 'left' || kind === 'full')) for (const l of lefts) emit(l, undefined);
      if (lefts.length === 0 && (kind === 'right' || kind === 'full')) for (const r of rights) emit(undefined, r);
    },
  };
  const gather = anyWindowLogic(ofEither(windows), uid === undefined ? {} : { uid }, buffered(pairs, records));
  return {
    ...gather,
    lateByInput: [spec.late?.left?.name, spec.late?.right?.name],
    onRecord: (record, input, ctx) => {
      const one = input === 0 ? { left: record, right: undefined } : { left: undefined, right: record };
      return gather.onRecord(one, input, ctx);
    },
  };
}

/** The windows of what is kept: only the gap of a session looks at records. */
function ofEither<L, R>(windows: JoinWindows<L | R>): JoinWindows<OneOf<L, R>> {
  if (windows.kind !== 'session') return windows;
  return { ...windows, gapMs: ({ left, right }) => windows.gapMs(left === undefined ? (right as R) : left) };
}
