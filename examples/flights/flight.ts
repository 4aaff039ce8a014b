import { fileURLToPath } from 'node:url';
import { int64, string, struct } from '@millrace/streams';

/** Three million flights of the first half of 2001, in order of time; from the npm package vega-datasets. */
export const flightsFile = fileURLToPath(new URL('../data/flights-3m.parquet', import.meta.resolve('vega-datasets')));

export const dayMs = 24 * 60 * 60 * 1000;

export const flightCodec = struct({ date: int64, delay: int64, distance: int64, origin: string, destination: string });

export interface Flight {
  /** Scheduled departure, epoch milliseconds. */
  readonly date: number;
  /** Minutes; negative is early. */
  readonly delay: number;
  /** Miles. */
  readonly distance: number;
  readonly origin: string;
  readonly destination: string;
}

/** A flight as the output shows it. */
export interface FlightLine extends Omit<Flight, 'date'> {
  readonly date: string;
}

export interface AirportDay {
  readonly airport: string;
  readonly day: string;
  readonly flights: number;
  readonly sumDelay: number;
  readonly maxDelay: number;
  /** The flight with the largest delay. */
  readonly worst: FlightLine;
}

export interface RouteDay {
  readonly route: string;
  readonly day: string;
  /** From the first day to the end of this one. */
  readonly flightsSoFar: number;
  readonly maxDelaySoFar: number;
}

export function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

export function lineOf(flight: Flight): FlightLine {
  const { date, delay, distance, origin, destination } = flight;
  return { date: new Date(date).toISOString(), delay, distance, origin, destination };
}
