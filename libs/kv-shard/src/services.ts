import type { Clock } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import type { Engine } from './engine/engine.ts';

/** What a store and its tables have in common. */
export interface KvServices {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}
