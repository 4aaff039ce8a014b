import { MillraceError } from '@millrace/kernel';
import { type Duration, durationMs } from './duration.ts';

/** Which clock puts records into windows and closes these: that of the records, or the machine's. */
export type WindowTime = 'event' | 'processing';

/** Windows of one size, side by side; a record is in exactly one. */
export interface TumblingWindows {
  readonly kind: 'tumbling';
  readonly time: WindowTime;
  readonly sizeMs: number;
  readonly offsetMs: number;
}

/** Windows of one size that begin every `everyMs`: a record is in about size ÷ every of them. */
export interface SlidingWindows {
  readonly kind: 'sliding';
  readonly time: WindowTime;
  readonly sizeMs: number;
  readonly everyMs: number;
  readonly offsetMs: number;
}

/** Windows that begin together and end one step after the other, until the size is reached and all begin anew. */
export interface CumulativeWindows {
  readonly kind: 'cumulative';
  readonly time: WindowTime;
  readonly sizeMs: number;
  readonly stepMs: number;
  readonly offsetMs: number;
}

/** Windows whose ends are known when a record comes. */
export type FixedWindows = TumblingWindows | SlidingWindows | CumulativeWindows;

/** One window for each stretch of records of a key with no gap between them. */
export interface SessionWindows<T = never> {
  readonly kind: 'session';
  readonly time: WindowTime;
  /** How long a session goes on after a record. */
  gapMs(record: T): number;
}

/** One window for each key, which never ends: a trigger says when it emits. */
export interface GlobalWindows {
  readonly kind: 'global';
}

/** Windows of a number of records of a key, in the order in which they arrive. */
export interface CountWindows {
  readonly kind: 'count';
  readonly size: number;
  readonly every: number;
  readonly partialAtEnd: boolean;
}

/** Windows of any kind over records of one type. */
export type Windows<T> = FixedWindows | SessionWindows<T> | GlobalWindows | CountWindows;

export interface Window {
  /** First timestamp in the window; −∞ for one that is not bounded by time. */
  readonly startMs: number;
  /** First timestamp after it; +∞ for one that is not bounded by time. */
  readonly endMs: number;
}

export interface FixedWindowOptions {
  /** Moves the windows, which are else aligned to the epoch (UTC). */
  readonly offset?: Duration;
  /** Default: event time. */
  readonly time?: WindowTime;
}

/** Tumbling windows, aligned to the epoch (UTC) plus `offset`. */
export function tumbling(size: Duration, options: FixedWindowOptions = {}): TumblingWindows {
  return { kind: 'tumbling', sizeMs: positive(size, 'the window size'), ...placed(options) };
}

/** Sliding windows of one size, one beginning every `every`. With `every` above `size` some records are in none. */
export function sliding(size: Duration, every: Duration, options: FixedWindowOptions = {}): SlidingWindows {
  const sizeMs = positive(size, 'the window size');
  const everyMs = positive(every, 'the slide of a window');
  if (sizeMs / everyMs > windowsOfRecordMax) tooMany(`a record would be in ${Math.ceil(sizeMs / everyMs)} windows`);
  return { kind: 'sliding', sizeMs, everyMs, ...placed(options) };
}

/** Cumulative windows: from the start of each `size` to the end of its first `step`, of its second, … of its last. */
export function cumulative(size: Duration, step: Duration, options: FixedWindowOptions = {}): CumulativeWindows {
  const sizeMs = positive(size, 'the window size');
  const stepMs = positive(step, 'the step of a window');
  if (sizeMs % stepMs !== 0) {
    throw new MillraceError('bad-argument', `the window size, ${sizeMs} ms, is no multiple of the step, ${stepMs} ms`);
  }
  if (sizeMs / stepMs > windowsOfRecordMax) tooMany(`a record would be in ${sizeMs / stepMs} windows`);
  return { kind: 'cumulative', sizeMs, stepMs, ...placed(options) };
}

/**
 * Sessions: a record is in the session of every record of its key that is less than `gap` away, and sessions that it
 * connects become one. With a function each record has its own gap, which reaches forward.
 */
export function session<T>(
  gap: Duration | ((record: T) => number),
  options: { readonly time?: WindowTime } = {},
): SessionWindows<T> {
  const time = options.time ?? 'event';
  if (typeof gap === 'function') return { kind: 'session', time, gapMs: (record) => checkedGap(gap(record)) };
  const gapMs = positive(gap, 'the gap of a session');
  return { kind: 'session', time, gapMs: () => gapMs };
}

/** All records of a key in one window; needs a trigger. */
export function globalWindow(): GlobalWindows {
  return { kind: 'global' };
}

export interface CountWindowOptions {
  /** A window emits at every so many records; default `size`: each record is in exactly one window. */
  readonly every?: number;
  /** Emit a last window that is not full when the input ends. Default false. */
  readonly partialAtEnd?: boolean;
}

/** Windows of the last `size` records of a key. */
export function countWindow(size: number, options: CountWindowOptions = {}): CountWindows {
  const { every = size, partialAtEnd = false } = options;
  for (const count of [size, every]) {
    if (!Number.isSafeInteger(count) || count < 1) {
      throw new MillraceError('bad-argument', `a count window needs whole numbers of records, not ${count}`);
    }
  }
  return { kind: 'count', size, every, partialAtEnd };
}

/** Start of the window that holds `timestampMs`; right for times before the epoch too. */
export function windowStart(windows: { sizeMs: number; offsetMs: number }, timestampMs: number): number {
  const { sizeMs, offsetMs } = windows;
  return Math.floor((timestampMs - offsetMs) / sizeMs) * sizeMs + offsetMs;
}

/** The last timestamp of a window. */
export function lastMs(window: Window): number {
  return window.endMs - 1;
}

/** More would make each record too dear. */
const windowsOfRecordMax = 10_000;

function placed(options: FixedWindowOptions): { time: WindowTime; offsetMs: number } {
  return { time: options.time ?? 'event', offsetMs: durationMs(options.offset ?? 0, 'the window offset') };
}

function positive(duration: Duration, name: string): number {
  const ms = durationMs(duration, name);
  if (ms <= 0) throw new MillraceError('bad-argument', `${name} must be positive: ${ms}`);
  return ms;
}

function checkedGap(gapMs: number): number {
  if (Number.isFinite(gapMs) && gapMs > 0) return gapMs;
  throw new MillraceError('bad-argument', `the gap of a session must be positive: ${gapMs}`);
}

function tooMany(message: string): never {
  throw new MillraceError('bad-argument', `${message}, at most ${windowsOfRecordMax}`);
}
