import { setTimeout } from 'node:timers/promises';
import { pick } from '../mix.ts';

const currencies = ['EUR', 'USD', 'JPY'] as const;
const seed = 11;

export interface Order {
  readonly id: number;
  readonly customer: string;
  readonly amount: number;
  readonly currency: string;
  readonly placedMs: number;
}

export interface Payment {
  readonly order: number;
  readonly cents: number;
  readonly paidMs: number;
}

/** An order each ten seconds, of one of 50 customers. */
export function orderOf(id: number): Order {
  return {
    id,
    customer: `c${pick(id, seed, 50)}`,
    amount: 1 + pick(id, seed + 2, 100),
    currency: currencies[pick(id, seed + 4, 3)] as string,
    placedMs: id * 10_000,
  };
}

/** One payment for each order, up to 20 minutes after it; in the order of the orders, each paid a little later. */
export function paymentOf(id: number): Payment {
  return { order: id, cents: 100, paidMs: id * 10_000 + Math.floor((id % 1000) * 1200) };
}

/** As a service would answer: not at once. */
export async function centsPerUnit(currency: string): Promise<number> {
  await setTimeout(0);
  return { EUR: 100, USD: 90, JPY: 1 }[currency] ?? 0;
}
