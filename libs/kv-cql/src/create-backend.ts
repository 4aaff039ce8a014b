import type { CreateStateBackend } from '@millrace/state';
import { openCqlStore } from './cql-store.ts';
import { readCqlSettings } from './settings.ts';

/** The backend `cql` of the state-service: shards on a ring that speaks CQL. */
export const createStateBackend: CreateStateBackend = ({ options, clock, random, telemetry }) =>
  openCqlStore({ settings: readCqlSettings(options), clock, stateClock: clock, random, telemetry });
