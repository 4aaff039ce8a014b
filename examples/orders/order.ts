import { mix, pick } from '../mix.ts';

export interface Order {
  readonly order: number;
  readonly customer: string;
  readonly placedMs: number;
  readonly note: string;
}

export interface Shipment {
  readonly order: number;
  readonly shipment: number;
  readonly carrier: string;
  readonly shippedMs: number;
}

/** An order and one of its shipments. */
export interface Delivery {
  readonly order: number;
  readonly shipment: number;
  readonly customer: string;
  readonly carrier: string;
  readonly waitedMs: number;
}

const startMs = Date.UTC(2026, 0, 1);
const carriers = ['road', 'rail', 'sea', 'air'];
const seed = 7;
/** Shipments come up to so many orders after theirs, and some a little before it. */
const behindMax = 5000;
const aheadMax = 200;

/** A new order each 100 ms. */
export function orderOf(index: number, noteBytes: number): Order {
  return {
    order: index,
    customer: `c${mix(index, seed) % 10_000}`,
    placedMs: startMs + index * 100,
    note: (mix(index, seed + 2).toString(36) + '.').repeat(Math.ceil(noteBytes / 8)).slice(0, noteBytes),
  };
}

/** Two shipments for each order on average; the first and the last may name orders that do not exist. */
export function shipmentOf(index: number): Shipment {
  const about = Math.floor(index / 2);
  const order = about + aheadMax - pick(index, seed + 3, behindMax + aheadMax);
  return {
    order,
    shipment: index,
    carrier: carriers[mix(index, seed + 5) % carriers.length] as string,
    shippedMs: startMs + about * 100 + 3_600_000,
  };
}
