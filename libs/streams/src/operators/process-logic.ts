import type { StateShape } from '@millrace/state';
import type { ConnectSpec, KeyedLogic, ProcessSpec } from '../api/process.ts';

/** The author's handlers as logic. */
export function processLogic<K, T, S extends StateShape, U>(spec: ProcessSpec<K, T, S, U>): KeyedLogic {
  const onRecord = spec.onRecord.bind(spec);
  const onTimer = spec.onTimer?.bind(spec);
  const onProcessingTimer = spec.onProcessingTimer?.bind(spec);
  return {
    shape: spec.state ?? {},
    onRecord: (record, _input, ctx) => onRecord(record as T, ctx as never),
    ...(onTimer === undefined ? {} : { onTimer: (timeMs, ctx) => onTimer(timeMs, ctx as never) }),
    ...(onProcessingTimer === undefined
      ? {}
      : { onProcessingTimer: (timeMs, ctx) => onProcessingTimer(timeMs, ctx as never) }),
  };
}

/** The author's two handlers as logic: input 0 is left, 1 is right. */
export function connectLogic<K, L, R, S extends StateShape, U>(spec: ConnectSpec<K, L, R, S, U>): KeyedLogic {
  const onLeft = spec.onLeft.bind(spec);
  const onRight = spec.onRight.bind(spec);
  const onTimer = spec.onTimer?.bind(spec);
  const onProcessingTimer = spec.onProcessingTimer?.bind(spec);
  return {
    shape: spec.state ?? {},
    onRecord: (record, input, ctx) =>
      input === 0 ? onLeft(record as L, ctx as never) : onRight(record as R, ctx as never),
    ...(onTimer === undefined ? {} : { onTimer: (timeMs, ctx) => onTimer(timeMs, ctx as never) }),
    ...(onProcessingTimer === undefined
      ? {}
      : { onProcessingTimer: (timeMs, ctx) => onProcessingTimer(timeMs, ctx as never) }),
  };
}
