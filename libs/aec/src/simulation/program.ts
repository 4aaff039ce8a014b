import type { Random } from '@millrace/kernel';
import type { Order } from './scheduler.ts';

/** What the handler of one record, timer or spawned piece of work does. */
export interface Plan {
  readonly id: number;
  readonly key: number;
  /** Milliseconds of each await before it is finished; none is a synchronous handler. */
  readonly awaitsMs: readonly number[];
  readonly spawns: readonly { readonly beforeAwait: number; readonly plan: Plan }[];
  /** Fails instead of this await; -1 never. A synchronous handler throws, an asynchronous one rejects. */
  readonly failsAt: number;
}

export type Step =
  | { readonly kind: 'record' | 'processing-timer'; readonly plan: Plan }
  | {
      readonly kind: 'watermark';
      readonly timers: readonly Plan[];
      /** Fires its timers one by one, asking for room, with awaits between. */
      readonly portions: boolean;
      readonly fails: 'no' | 'advance' | 'emit';
    }
  | { readonly kind: 'mark' | 'drain' | 'pause' };

export interface Program {
  readonly order: Order;
  readonly inFlightLimit: number;
  readonly watermarks: 'serial' | 'parallel';
  readonly watermarksWaitingMax: number;
  readonly steps: readonly Step[];
  /** The task is failed from outside after so many turns of the scheduler; -1 never. */
  readonly failsAfterTurns: number;
}

export interface ProgramOptions {
  /** Timers and spawned work. */
  readonly derived: boolean;
  readonly failures: boolean;
  /** Nothing whose place among the work of its key depends on time, so that a reference can say the result. */
  readonly exact?: boolean;
}

const limits = [1, 2, 3, 8, 64, 500, 6000];
/** Cache, store nearby, store far away, now and then a very slow one. */
const latenciesMs = [0, 1, 5, 23, 23, 400];

/** A random program: everything that happens in it follows from the generator's seed. */
export function randomProgram(random: Random, options: ProgramOptions): Program {
  const long = random.below(20) === 0;
  const keys = 1 + random.below(long ? 200 : 5);
  const length = 10 + random.below(long ? 600 : 60);
  const failurePercent = options.failures ? 3 : 0;
  const asyncPercent = pick(random, [0, 30, 70, 100]);
  const watermarkPercent = pick(random, [0, 5, 20]);
  let id = 0;

  const exact = options.exact === true;
  const mode = pick(random, ['serial', 'parallel'] as const);

  const chance = (percent: number): boolean => random.below(100) < percent;
  const latency = pick(random, latenciesMs);
  const awaitMs = (): number => (chance(80) ? latency : pick(random, latenciesMs));
  const plan = (depth: number, key = random.below(keys)): Plan => {
    const own = id++;
    const awaits = chance(asyncPercent) ? 1 + random.below(3) : 0;
    const awaitsMs = Array.from({ length: awaits }, awaitMs);
    const spawns: { beforeAwait: number; plan: Plan }[] = [];
    while (options.derived && depth < 4 && chance(20)) {
      spawns.push({ beforeAwait: random.below(awaits + 1), plan: plan(depth + 1, exact ? key : undefined) });
    }
    const failsAt = chance(failurePercent) ? random.below(awaits + 1) : -1;
    return { id: own, key, awaitsMs, spawns, failsAt };
  };
  const timers = (): Plan[] => {
    if (!options.derived || (exact && mode === 'parallel')) return [];
    const wanted = Array.from({ length: random.below(5) }, () => random.below(keys));
    return (exact ? [...new Set(wanted)] : wanted).map((key) => plan(2, key));
  };
  const step = (): Step => {
    if (chance(watermarkPercent)) {
      const fails = chance(failurePercent) ? pick(random, ['advance', 'emit'] as const) : 'no';
      return { kind: 'watermark', timers: timers(), portions: chance(50), fails };
    }
    if (chance(5)) return { kind: pick(random, ['mark', 'drain', 'pause'] as const) };
    if (options.derived && !exact && chance(5)) return { kind: 'processing-timer', plan: plan(1) };
    return { kind: 'record', plan: plan(0) };
  };

  return {
    order: pick(random, ['any', 'time'] as const),
    inFlightLimit: randomLimit(random),
    watermarks: mode,
    watermarksWaitingMax: 1 + random.below(4),
    steps: Array.from({ length }, step),
    failsAfterTurns: options.failures && chance(20) ? random.below(60) : -1,
  };
}

export function randomLimit(random: Random): number {
  return pick(random, limits);
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.below(from.length)] as T;
}
