import { int64, keyOf, type MapHandle, map, type ValueHandle, value } from '@millrace/state';
import type { KeyedLogic, LogicContext } from '../api/process.ts';
import type { Trigger } from '../api/trigger.ts';
import type { CountWindows, Window } from '../api/windows.ts';
import type { WindowContents } from './window-contents.ts';
import type { WindowFiring } from './window-firing.ts';

const allTime: Window = { startMs: Number.NEGATIVE_INFINITY, endMs: Number.POSITIVE_INFINITY };
/** Only the end of the input moves the watermark past the last time that a date can have. */
const endTimerMs = 8.64e15;

/** One window for each key, which emits when its trigger says so. */
export function globalWindowLogic(firing: WindowFiring): KeyedLogic {
  const watchesEnd = firing.trigger?.watchesEnd === true;
  return {
    shape: firing.shape,
    onRecord: (record, _input, ctx) =>
      firing.add(ctx, allTime, record, ctx, false, (first) => {
        if (first && watchesEnd) ctx.timers.at(endTimerMs);
      }),
    onTimer: (timeMs, ctx) =>
      firing.timer(ctx, allTime, ctx, { domain: 'event', timeMs, isEnd: watchesEnd && timeMs === endTimerMs }),
    onProcessingTimer: (timeMs, ctx) => firing.timer(ctx, allTime, ctx, { domain: 'processing', timeMs, isEnd: false }),
  };
}

/** Count windows side by side: emit at `size` records and begin anew. */
export function countTrigger({ size, partialAtEnd }: CountWindows): Trigger<unknown, number> {
  return {
    state: int64,
    create: () => 0,
    onRecord: (_record, count) => (count + 1 === size ? { state: 0, emit: true, clear: true } : { state: count + 1 }),
    ...(partialAtEnd ? { onEnd: () => ({ state: 0, emit: true, clear: true }) } : {}),
  };
}

/**
 * Count windows that overlap or leave records out: the last `size` records are kept one by one, and at every `every`th the
 * contents are asked for the result of those.
 */
export function slidingCountLogic(windows: CountWindows, contents: WindowContents): KeyedLogic {
  const { size, every, partialAtEnd } = windows;
  return {
    shape: { seen: value(int64), last: map(keyOf<number>(), contents.recordCodec) },
    async onRecord(record, _input, ctx) {
      const seen = ((await seenOf(ctx).get()) ?? 0) + 1;
      seenOf(ctx).set(seen);
      lastOf(ctx).set(seen, record);
      if (seen > size) lastOf(ctx).delete(seen - size);
      if (partialAtEnd && seen === 1) ctx.timers.at(endTimerMs);
      if (seen % every === 0) await contents.emitRecords(await kept(ctx), allTime, ctx);
    },
    async onTimer(_timeMs, ctx) {
      const seen = (await seenOf(ctx).get()) ?? 0;
      if (seen % every > 0) await contents.emitRecords(await kept(ctx), allTime, ctx);
      seenOf(ctx).clear();
      await lastOf(ctx).clear();
    },
  };
}

async function kept(ctx: LogicContext): Promise<unknown[]> {
  const records: unknown[] = [];
  for await (const [, record] of lastOf(ctx).entries()) records.push(record);
  return records;
}

function seenOf(ctx: LogicContext): ValueHandle<number> {
  return ctx.state['seen'] as unknown as ValueHandle<number>;
}

function lastOf(ctx: LogicContext): MapHandle<number, unknown> {
  return ctx.state['last'] as unknown as MapHandle<number, unknown>;
}
