import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ExpectedFlights, expectedFlights } from '@millrace/examples/flights/expected';
import { flightsFile } from '@millrace/examples/flights/file';
import { expect } from 'vitest';
import { differences, readPublishedRows } from './json-lines.ts';

const cache = resolve(import.meta.dirname, '../../../node_modules/.cache/millrace-e2e');

/**
 * What the flights job owes for its first `rows` rows, by the plain loop of the examples. Kept on disk under a hash of the
 * loop's source and of the data, since several tests need it and the whole file takes the loop half a minute.
 */
async function expectedOf(rows: number | undefined): Promise<ExpectedFlights> {
  const source = fileURLToPath(import.meta.resolve('@millrace/examples/flights/expected'));
  const hash = createHash('sha256').update(readFileSync(source)).update(readFileSync(flightsFile)).update(`${rows}`);
  const path = resolve(cache, `flights-${hash.digest('hex').slice(0, 16)}.json`);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ExpectedFlights;
  } catch {
    const expected = await expectedFlights(flightsFile, rows);
    mkdirSync(cache, { recursive: true });
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(expected));
    renameSync(`${path}.${process.pid}`, path);
    return expected;
  }
}

/** Fails unless the directory holds every line of both reports, each exactly once, and nothing else. */
export async function expectExactFlights(output: string, rows?: number): Promise<void> {
  const expected = await expectedOf(rows);
  expect(expected.airportDays.length).toBeGreaterThan(100);
  expect(expected.routes.length).toBeGreaterThan(100);
  expect(differences(readPublishedRows(`${output}/airport-days`), expected.airportDays)).toEqual([]);
  expect(differences(readPublishedRows(`${output}/routes`), expected.routes)).toEqual([]);
}
