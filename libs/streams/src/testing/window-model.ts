/**
 * What windows emit, computed one record at a time in plain loops: the reference of the property tests. It knows nothing
 * of state, timers, keys in flight or restores.
 */

export interface Item {
  readonly id: number;
  readonly key: string;
  readonly timeMs: number;
  /** The watermark that follows this record; undefined for none. */
  readonly watermarkMs: number | undefined;
  /** The machine's clock when the record is handled. */
  readonly nowMs: number;
}

export interface Result {
  readonly key: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Ids of the window's records, in order. */
  readonly ids: readonly number[];
}

export interface Outcome {
  readonly results: Result[];
  readonly late: number[];
}

export interface FixedModel {
  readonly sizeMs: number;
  readonly offsetMs: number;
  /** Starts of windows; the size for tumbling and cumulative ones. */
  readonly everyMs: number;
  /** Ends within the size; the size for tumbling and sliding ones. */
  readonly stepMs: number;
  readonly latenessMs: number;
  /** Emit at every so many records; 0: only at the end. */
  readonly earlyRecords: number;
}

interface Open {
  readonly key: string;
  startMs: number;
  endMs: number;
  ids: number[];
  early: number;
  fired: boolean;
}

const result = ({ key, startMs, endMs, ids }: Open): Result => ({
  key,
  startMs,
  endMs,
  ids: [...ids].toSorted((a, b) => a - b),
});

/** All windows of this shape that hold a time. */
function windowsHolding(model: FixedModel, timeMs: number): [number, number][] {
  const found: [number, number][] = [];
  const { sizeMs, everyMs, stepMs, offsetMs } = model;
  const firstStart = Math.floor((timeMs - sizeMs - offsetMs) / everyMs) * everyMs + offsetMs;
  for (let startMs = firstStart; startMs <= timeMs; startMs += everyMs) {
    for (let endMs = startMs + stepMs; endMs <= startMs + sizeMs; endMs += stepMs) {
      if (startMs <= timeMs && timeMs < endMs) found.push([startMs, endMs]);
    }
  }
  return found;
}

/** Tumbling, sliding and cumulative windows of event time. */
export function fixedOutcome(model: FixedModel, items: readonly Item[]): Outcome {
  const outcome: Outcome = { results: [], late: [] };
  let open: Open[] = [];
  let watermarkMs = Number.NEGATIVE_INFINITY;
  const advance = (toMs: number): void => {
    if (toMs <= watermarkMs) return;
    watermarkMs = toMs;
    for (const window of open.toSorted((a, b) => a.endMs - b.endMs)) {
      if (window.fired || window.endMs - 1 > toMs) continue;
      window.fired = true;
      outcome.results.push(result(window));
    }
    open = open.filter((window) => window.endMs - 1 + model.latenessMs > toMs);
  };
  for (const item of items) {
    let taken = false;
    for (const [startMs, endMs] of windowsHolding(model, item.timeMs)) {
      if (endMs - 1 + model.latenessMs <= watermarkMs) continue;
      taken = true;
      let window = open.find((one) => one.key === item.key && one.startMs === startMs && one.endMs === endMs);
      if (window === undefined) {
        window = { key: item.key, startMs, endMs, ids: [], early: 0, fired: endMs - 1 <= watermarkMs };
        open.push(window);
      }
      window.ids.push(item.id);
      window.early++;
      const early = model.earlyRecords > 0 && window.early === model.earlyRecords;
      if (early) window.early = 0;
      if (early || endMs - 1 <= watermarkMs) outcome.results.push(result(window));
    }
    if (!taken) outcome.late.push(item.id);
    if (item.watermarkMs !== undefined) advance(item.watermarkMs);
  }
  advance(Number.POSITIVE_INFINITY);
  return outcome;
}

export interface SessionModel {
  readonly gapMs: number;
  readonly latenessMs: number;
  readonly earlyRecords: number;
}

/** Sessions of event time. */
export function sessionOutcome(model: SessionModel, items: readonly Item[]): Outcome {
  const outcome: Outcome = { results: [], late: [] };
  let open: (Open & { firedEndMs: number | undefined })[] = [];
  let watermarkMs = Number.NEGATIVE_INFINITY;
  const advance = (toMs: number): void => {
    if (toMs <= watermarkMs) return;
    watermarkMs = toMs;
    for (const session of open.toSorted((a, b) => a.endMs - b.endMs)) {
      if (session.firedEndMs === session.endMs || session.endMs - 1 > toMs) continue;
      session.firedEndMs = session.endMs;
      outcome.results.push(result(session));
    }
    open = open.filter((session) => session.endMs - 1 + model.latenessMs > toMs);
  };
  for (const item of items) {
    let [startMs, endMs] = [item.timeMs, item.timeMs + model.gapMs];
    const met = open.filter((one) => one.key === item.key && one.startMs < endMs && startMs < one.endMs);
    for (const one of met) {
      startMs = Math.min(startMs, one.startMs);
      endMs = Math.max(endMs, one.endMs);
    }
    if (endMs - 1 + model.latenessMs <= watermarkMs) {
      outcome.late.push(item.id);
    } else {
      let early = met.reduce((sum, one) => sum + one.early, 0) + 1;
      const emits = model.earlyRecords > 0 && early >= model.earlyRecords;
      if (emits) early = 0;
      const over = endMs - 1 <= watermarkMs;
      const session = {
        key: item.key,
        startMs,
        endMs,
        ids: [...met.flatMap((one) => one.ids), item.id],
        early,
        fired: over,
        firedEndMs: over ? endMs : met[0]?.firedEndMs,
      };
      open = [...open.filter((one) => !met.includes(one)), session];
      if (over || emits) outcome.results.push(result(session));
    }
    if (item.watermarkMs !== undefined) advance(item.watermarkMs);
  }
  advance(Number.POSITIVE_INFINITY);
  return outcome;
}

/** Windows of the last `size` records of a key, at every `every`th. */
export function countOutcome(
  model: { readonly size: number; readonly every: number; readonly partialAtEnd: boolean },
  items: readonly Item[],
): Outcome {
  const results: Result[] = [];
  const seen = new Map<string, number[]>();
  const emit = (key: string, ids: readonly number[]): void => {
    const ends = { startMs: Number.NEGATIVE_INFINITY, endMs: Number.POSITIVE_INFINITY };
    results.push({ key, ...ends, ids: ids.slice(-model.size) });
  };
  for (const { key, id } of items) {
    const ids = [...(seen.get(key) ?? []), id];
    seen.set(key, ids);
    if (ids.length % model.every === 0) emit(key, ids);
  }
  if (model.partialAtEnd) {
    for (const [key, ids] of seen) {
      const left = ids.length % model.every;
      if (left > 0) emit(key, model.every === model.size ? ids.slice(-left) : ids);
    }
  }
  return { results, late: [] };
}
