import { MillraceError } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import type { Source } from '../../api/source.ts';
import { generator } from '../generator.ts';
import { type NexmarkSettings, nexmarkEvent } from './event.ts';
import { type NexmarkEvent, nexmarkCodec } from './model.ts';

export interface NexmarkOptions {
  /** Number of events; without it the source never ends. */
  readonly events?: number | undefined;
  /** Default 1. */
  readonly seed?: number | undefined;
  /** Time of the first event, epoch milliseconds. Default 2015-07-15T00:00:00Z. */
  readonly startMs?: number | undefined;
  /** Events per second of event time: how dense they lie. Default 10,000. */
  readonly eventsPerSecond?: number | undefined;
  /** Events may lie before their place in the order by up to this much. Default 0: in order. */
  readonly outOfOrdernessMs?: number | undefined;
  /** Parts that subtasks share. Default 128. */
  readonly splits?: number;
  /** How fast they are read, by the machine's clock. */
  readonly recordsPerSecond?: number | undefined;
}

/** Settings with their defaults, for `nexmarkEvent` where a reference is computed. */
export function nexmarkSettings(options: NexmarkOptions = {}): NexmarkSettings {
  const { seed = 1, startMs = Date.UTC(2015, 6, 15), eventsPerSecond = 10_000, outOfOrdernessMs = 0 } = options;
  for (const [name, number, least] of [
    ['seed', seed, Number.MIN_SAFE_INTEGER],
    ['startMs', startMs, 0],
    ['eventsPerSecond', eventsPerSecond, 1],
    ['outOfOrdernessMs', outOfOrdernessMs, 0],
  ] as const) {
    if (Number.isSafeInteger(number) && number >= least) continue;
    throw new MillraceError(
      'bad-argument',
      `nexmark: ${name} must be a whole number of at least ${least}, not ${number}`,
    );
  }
  return { seed, startMs, eventsPerSecond, outOfOrdernessMs };
}

/**
 * Events of an auction site, for tests and measurements: 2 % people, 6 % auctions, 92 % bids, each a pure function of its
 * index (`nexmarkEvent`). `nexmarkTime` is their time; several subtasks read at about the same place.
 */
export function nexmark(options: NexmarkOptions = {}): Source<NexmarkEvent> {
  const settings = nexmarkSettings(options);
  const source = generator({
    record: (index) => nexmarkEvent(index, settings),
    // At least one part of the event is always there.
    codec: nexmarkCodec as Codec<unknown> as Codec<NexmarkEvent>,
    recordsPerSecond: options.recordsPerSecond,
    ...(options.events === undefined ? {} : { records: options.events }),
    ...(options.splits === undefined ? {} : { splits: options.splits }),
  });
  return { ...source, kind: 'nexmark' };
}
