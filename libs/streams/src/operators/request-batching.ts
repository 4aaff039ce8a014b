import { RequestBatcher } from '@millrace/aec';
import type { BatcherFactory } from '@millrace/state';

/** Answers are worked on while the requests of the other batches are on their way. */
const batchesInFlight = 8;
/** So that what a few records ask for together stays together, whatever the limit. */
const countMaxLeast = 16;
const countMaxMost = 1000;
const sizeBytesMax = 1024 * 1024;

/**
 * The controller's batcher as the state's: what the records of one tick ask for leaves together, in batches of at most an
 * eighth of those in flight. With one batch of all, store and slot would take turns in waiting for each other: a
 * limit of 100 at a latency of 1 ms then gives half of what it can when a record costs 10 µs.
 */
export function requestBatching(inFlightLimit: number): BatcherFactory {
  const countMax = Math.min(Math.max(Math.ceil(inFlightLimit / batchesInFlight), countMaxLeast), countMaxMost);
  return (execute) => {
    const requests = new RequestBatcher({ execute, countMax, sizeBytesMax, sizeOf });
    return { submit: (request) => requests.request(request) };
  };
}

function sizeOf(request: unknown): number {
  return request instanceof Uint8Array ? request.byteLength : 0;
}
