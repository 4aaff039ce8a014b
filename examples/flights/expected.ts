/*
 * The same two reports by a plain loop over the same rows: nothing of Millrace in it but the shape of the results. Tests
 * compare every line.
 */
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { AirportDay, Flight, FlightLine, RouteDay } from './flight.ts';

export interface ExpectedFlights {
  /** Lines of JSON, sorted. */
  readonly airportDays: readonly string[];
  readonly routes: readonly string[];
}

interface AirportTotal {
  flights: number;
  sumDelay: number;
  worst: Flight;
}

interface RouteTotal {
  flights: number;
  maxDelay: number;
}

/** Reads the first `rows` rows of the file, or all, and computes both reports. */
export async function expectedFlights(file: string, rows = Number.POSITIVE_INFINITY): Promise<ExpectedFlights> {
  const airports = new Map<string, AirportTotal>();
  const routes = new Map<string, Map<string, RouteTotal>>();
  for await (const flight of readFlights(file, rows)) {
    const day = new Date(flight.date).toISOString().slice(0, 10);
    addToAirport(airports, `${flight.origin} ${day}`, flight);
    addToRoute(routes, `${flight.origin}-${flight.destination}`, day, flight);
  }
  return { airportDays: airportLines(airports), routes: routeLines(routes) };
}

async function* readFlights(file: string, rows: number): AsyncGenerator<Flight> {
  const buffer = await asyncBufferFromFile(file);
  const metadata = await parquetMetadataAsync(buffer);
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = Math.min(rows, start + Number(group.num_rows));
    if (end <= start) return;
    const list = await parquetReadObjects({ file: buffer, metadata, compressors, rowStart: start, rowEnd: end });
    for (const row of list) {
      yield {
        date: (row['date'] as Date).getTime(),
        delay: Number(row['delay']),
        distance: Number(row['distance']),
        origin: row['origin'] as string,
        destination: row['destination'] as string,
      };
    }
    start += Number(group.num_rows);
  }
}

function addToAirport(airports: Map<string, AirportTotal>, key: string, flight: Flight): void {
  const total = airports.get(key);
  if (total === undefined) {
    airports.set(key, { flights: 1, sumDelay: flight.delay, worst: flight });
    return;
  }
  total.flights++;
  total.sumDelay += flight.delay;
  if (flight.delay >= total.worst.delay && rank(flight) > rank(total.worst)) total.worst = flight;
}

/** Larger is worse: more delay; among equals earlier, then by destination, then the shorter one. */
function rank(flight: Flight): string {
  const number = (value: number): string => String(value).padStart(16, '0');
  const destination = flight.destination
    .split('')
    .map((letter) => number(0xffff - letter.charCodeAt(0)))
    .join('');
  return [
    number(flight.delay + 1_000_000),
    number(10_000_000_000_000 - flight.date),
    destination,
    number(1_000_000 - flight.distance),
  ].join(' ');
}

function addToRoute(routes: Map<string, Map<string, RouteTotal>>, route: string, day: string, flight: Flight): void {
  let days = routes.get(route);
  if (days === undefined) {
    days = new Map();
    routes.set(route, days);
  }
  const total = days.get(day);
  if (total === undefined) days.set(day, { flights: 1, maxDelay: flight.delay });
  else days.set(day, { flights: total.flights + 1, maxDelay: Math.max(total.maxDelay, flight.delay) });
}

function airportLines(airports: ReadonlyMap<string, AirportTotal>): string[] {
  const lines: string[] = [];
  for (const [key, { flights, sumDelay, worst }] of airports) {
    const [airport, day] = key.split(' ') as [string, string];
    const { date, delay, distance, origin, destination } = worst;
    const line: FlightLine = { date: new Date(date).toISOString(), delay, distance, origin, destination };
    lines.push(JSON.stringify({ airport, day, flights, sumDelay, maxDelay: delay, worst: line } satisfies AirportDay));
  }
  return lines.sort();
}

function routeLines(routes: ReadonlyMap<string, ReadonlyMap<string, RouteTotal>>): string[] {
  const lines: string[] = [];
  for (const [route, days] of routes) {
    let flightsSoFar = 0;
    let maxDelaySoFar = Number.NEGATIVE_INFINITY;
    for (const [day, { flights, maxDelay }] of [...days].sort(([a], [b]) => (a < b ? -1 : 1))) {
      flightsSoFar += flights;
      maxDelaySoFar = Math.max(maxDelaySoFar, maxDelay);
      lines.push(JSON.stringify({ route, day, flightsSoFar, maxDelaySoFar } satisfies RouteDay));
    }
  }
  return lines.sort();
}
