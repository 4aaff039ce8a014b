import type { Random } from '@millrace/kernel';

/** What the handler of one record, timer or spawned piece of work does. */
export interface Plan {
  readonly id: number;
  readonly key: number;
  /** Awaits before it is finished; none is a synchronous handler. */
  readonly awaits: number;
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
}

/** A random program: everything that happens in it follows from the generator's seed. */
export function randomProgram(random: Random, options: ProgramOptions): Program {
  const keys = 1 + random.below(5);
  const length = 10 + random.below(60);
  const failurePercent = options.failures ? 3 : 0;
  const asyncPercent = pick(random, [0, 30, 70, 100]);
  const watermarkPercent = pick(random, [0, 5, 20]);
  let id = 0;

  const chance = (percent: number): boolean => random.below(100) < percent;
  const plan = (depth: number): Plan => {
    const own = id++;
    const awaits = chance(asyncPercent) ? 1 + random.below(3) : 0;
    const spawns: { beforeAwait: number; plan: Plan }[] = [];
    while (options.derived && depth < 4 && chance(20)) {
      spawns.push({ beforeAwait: random.below(awaits + 1), plan: plan(depth + 1) });
    }
    const failsAt = chance(failurePercent) ? random.below(awaits + 1) : -1;
    return { id: own, key: random.below(keys), awaits, spawns, failsAt };
  };
  const timers = (): Plan[] => Array.from({ length: options.derived ? random.below(5) : 0 }, () => plan(2));
  const step = (): Step => {
    if (chance(watermarkPercent)) {
      const fails = chance(failurePercent) ? pick(random, ['advance', 'emit'] as const) : 'no';
      return { kind: 'watermark', timers: timers(), portions: chance(50), fails };
    }
    if (chance(5)) return { kind: pick(random, ['mark', 'drain', 'pause'] as const) };
    if (options.derived && chance(5)) return { kind: 'processing-timer', plan: plan(1) };
    return { kind: 'record', plan: plan(0) };
  };

  return {
    inFlightLimit: pick(random, [1, 2, 3, 8, 64]),
    watermarks: pick(random, ['serial', 'parallel'] as const),
    watermarksWaitingMax: 1 + random.below(4),
    steps: Array.from({ length }, step),
    failsAfterTurns: options.failures && chance(20) ? random.below(60) : -1,
  };
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.below(from.length)] as T;
}
