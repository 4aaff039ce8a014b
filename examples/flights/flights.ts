/*
 * Two reports on flights, exactly once: `airport-days`, the delays of each airport and day, by a tumbling window; and
 * `routes`, what has happened on each route up to the end of each day, by a timer at midnight.
 */
import { join } from 'node:path';
import {
  boundedOutOfOrderness,
  int64,
  job,
  json,
  jsonLines,
  map,
  nullable,
  parquetFiles,
  struct,
  tumbling,
  value,
} from '@millrace/streams';
import { z } from 'zod';
import {
  type AirportDay,
  dayMs,
  dayOf,
  type Flight,
  flightCodec,
  flightsFile,
  lineOf,
  type RouteDay,
} from './flight.ts';

const options = z.strictObject({
  /** Directory for the reports; each goes to a directory of its own in it. */
  output: z.string().min(1).default('out/flights'),
  /** Remove the reports of an earlier run. */
  overwrite: z.boolean().default(false),
  files: z.array(z.string()).min(1).default([flightsFile]),
  /** Read only the first rows. */
  rows: z.int().positive().optional(),
  recordsPerSecond: z.number().positive().optional(),
});

/** The larger delay; among equals, an order of the flights themselves, so that arrival does not matter. */
function worse(a: Flight, b: Flight): Flight {
  if (a.delay !== b.delay) return a.delay > b.delay ? a : b;
  if (a.date !== b.date) return a.date < b.date ? a : b;
  if (a.destination !== b.destination) return a.destination < b.destination ? a : b;
  return a.distance <= b.distance ? a : b;
}

const delays = struct({ flights: int64, sumDelay: int64, worst: nullable(flightCodec) });
const soFar = struct({ flights: int64, maxDelay: int64 });

export default job('flights', { options }, (flow, { output, overwrite, files, rows, recordsPerSecond }) => {
  const flights = flow.from(
    parquetFiles({
      files,
      columns: { date: 'timestamp', delay: 'int', distance: 'int', origin: 'string', destination: 'string' },
      rows,
      recordsPerSecond,
      codec: flightCodec,
    }),
    { uid: 'flights', timestamp: (flight) => flight.date, watermarks: boundedOutOfOrderness({ minutes: 1 }) },
  );

  flights
    .keyBy((flight) => flight.origin)
    .window(tumbling({ days: 1 }), { uid: 'airport-days' })
    .aggregate({
      accumulator: delays,
      output: json<AirportDay>(),
      create: () => ({ flights: 0, sumDelay: 0, worst: null }),
      add: ({ flights, sumDelay, worst }, flight) => ({
        flights: flights + 1,
        sumDelay: sumDelay + flight.delay,
        worst: worst === null ? flight : worse(worst, flight),
      }),
      result: ({ flights, sumDelay, worst }, airport, window) => {
        const flight = worst as Flight;
        const day = dayOf(window.startMs);
        return { airport, day, flights, sumDelay, maxDelay: flight.delay, worst: lineOf(flight) };
      },
    })
    .to(jsonLines({ directory: join(output, 'airport-days'), overwrite }), { uid: 'airport-days-files' });

  flights
    .keyBy((flight) => `${flight.origin}-${flight.destination}`)
    .process({
      uid: 'routes',
      state: {
        /** All days that are over. */
        total: value(soFar),
        /** Days that are not over, by their start: flights of tomorrow may come before today's end is certain. */
        days: map(int64, soFar),
      },
      output: json<RouteDay>(),
      async onRecord(flight, ctx) {
        const start = Math.floor(flight.date / dayMs) * dayMs;
        const day = await ctx.state.days.get(start);
        if (day === undefined) ctx.timers.at(start + dayMs);
        ctx.state.days.set(start, {
          flights: (day?.flights ?? 0) + 1,
          maxDelay: day === undefined ? flight.delay : Math.max(day.maxDelay, flight.delay),
        });
      },
      async onTimer(midnight, ctx) {
        const start = midnight - dayMs;
        const [day, total] = await Promise.all([ctx.state.days.get(start), ctx.state.total.get()]);
        if (day === undefined) return;
        const flightsSoFar = (total?.flights ?? 0) + day.flights;
        const maxDelaySoFar = total === undefined ? day.maxDelay : Math.max(total.maxDelay, day.maxDelay);
        ctx.state.days.delete(start);
        ctx.state.total.set({ flights: flightsSoFar, maxDelay: maxDelaySoFar });
        ctx.emit({ route: ctx.key, day: dayOf(start), flightsSoFar, maxDelaySoFar });
      },
    })
    .to(jsonLines({ directory: join(output, 'routes'), overwrite }), { uid: 'routes-files' });
});
