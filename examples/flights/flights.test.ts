import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildGraph } from '@millrace/streams';
import { TestRun } from '@millrace/streams/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOutput } from '../read-output.ts';
import { expectedFlights } from './expected.ts';
import { flightsFile } from './flight.ts';
import flights from './flights.ts';

/** FLIGHTS_ROWS=3000000 checks the whole file. */
const rows = Number(process.env['FLIGHTS_ROWS'] ?? 50_000);

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flights-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the flights job', () => {
  it('reports every airport, route and day as a plain loop does, across a restart at another parallelism', async () => {
    const graph = buildGraph(flights, { output: directory, rows });
    const first = await TestRun.start(graph, { parallelism: 2 });
    await first.step(Math.ceil(rows / 8000), 1000);
    const restore = await first.checkpoint();
    await first.complete(restore);
    await first.step(5, 1000);
    await first.close();
    const second = await TestRun.start(graph, { parallelism: 3, generation: 2, restore });
    await second.finish();
    const expected = await expectedFlights(flightsFile, rows);
    expect(await readOutput(join(directory, 'airport-days'))).toEqual(expected.airportDays);
    expect(await readOutput(join(directory, 'routes'))).toEqual(expected.routes);
  }, 300_000);

  it('refuses options that it does not know, before it starts', () => {
    expect(() => buildGraph(flights, { output: directory, row: 5 })).toThrow(/options/);
  });
});
