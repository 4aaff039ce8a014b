/*
 * Orders with what belongs to them: the price from a service that takes its time, the discount by rules that are
 * broadcast, the payment that may never come. And the best customers of each country.
 */
import { setTimeout } from 'node:timers/promises';
import {
  boundedOutOfOrderness,
  generator,
  int64,
  job,
  json,
  jsonLines,
  map,
  monotonous,
  type Sink,
  sliding,
  string,
  struct,
} from '@millrace/streams';
import { z } from 'zod';

const options = z.strictObject({
  output: z.string().min(1).default('out/enrich'),
  overwrite: z.boolean().default(false),
  orders: z.int().positive().default(2000),
});

const order = struct({ id: int64, customer: string, country: string, cents: int64, placedMs: int64 });
const payment = struct({ order: int64, paidMs: int64 });
const countries = ['DE', 'FR', 'JP'] as const;

/** A service on the network, in the place of a real one. */
async function customerName(customer: string, signal: AbortSignal): Promise<string | undefined> {
  await setTimeout(1, undefined, { signal });
  return customer === 'c0' ? undefined : `Customer ${customer.slice(1)}`;
}

export default job('enrich', { options }, (flow, o) => {
  const files = <T>(name: string): Sink<T> => jsonLines({ directory: `${o.output}/${name}`, overwrite: o.overwrite });
  const orders = flow.from(
    generator({
      records: o.orders,
      splits: 8,
      record: (id) => ({
        id,
        customer: `c${id % 11}`,
        country: countries[id % 3] as string,
        cents: 100 + ((id * 37) % 900),
        placedMs: id * 1000,
      }),
      codec: order,
    }),
    { uid: 'orders', timestamp: (one) => one.placedMs, watermarks: boundedOutOfOrderness({ seconds: 5 }) },
  );
  // Every fifth order is never paid.
  const payments = flow.from(
    generator({
      records: o.orders,
      splits: 8,
      record: (id) => ({ order: id % 5 === 0 ? -1 : id, paidMs: id * 1000 + 500 }),
      codec: payment,
    }),
    { uid: 'payments', timestamp: (one) => one.paidMs, watermarks: monotonous() },
  );
  const rules = flow.from(
    generator({ records: 3, splits: 1, record: (i) => ({ country: countries[i] as string, percent: 10 * i }) }),
    { uid: 'rules' },
  );

  orders
    .keyBy((one) => one.customer)
    .lookupJoin({
      uid: 'names',
      kind: 'left',
      lookup: (customer, { signal }) => customerName(customer, signal),
      cache: { codec: string, ttl: { hours: 1 } },
      timeout: { seconds: 5 },
      retry: { attempts: 3, backoff: { ms: 50 } },
      output: json<{ order: number; name: string | null }>(),
      pair: (one, name) => ({ order: one.id, name: name ?? null }),
    })
    .to(files('names'), { uid: 'names-files' });

  orders
    .keyBy((one) => one.id)
    .outerJoin(
      payments.keyBy((one) => one.order),
      {
        uid: 'paid',
        kind: 'left',
        left: { codec: order },
        right: { codec: payment },
        output: json<{ order: number; paidMs: number | null }>(),
        pair: (one, paid) => ({ order: one.id, paidMs: paid?.paidMs ?? null }),
      },
    )
    .to(files('paid'), { uid: 'paid-files' });

  orders
    .keyBy((one) => one.id)
    .windowJoin(
      payments.keyBy((one) => one.order),
      sliding({ minutes: 1 }, { seconds: 30 }),
      {
        uid: 'unpaid',
        kind: 'left',
        left: order,
        right: payment,
        output: json<{ order: number; minute: number; paid: boolean }>(),
        pair: (one, paid, _key, window) => ({ order: one.id, minute: window.startMs, paid: paid !== undefined }),
      },
    )
    .filter((one) => !one.paid)
    .to(files('unpaid'), { uid: 'unpaid-files' });

  orders
    .connectBroadcast(rules, {
      uid: 'discounts',
      broadcast: { percents: map(string, int64) },
      output: json<{ order: number; cents: number }>(),
      onBroadcast: (rule, maps) => maps.percents.set(rule.country, rule.percent),
      onRecord(one, maps, ctx) {
        const percent = maps.percents.get(one.country) ?? 0;
        ctx.emit({ order: one.id, cents: one.cents - Math.floor((one.cents * percent) / 100) });
      },
    })
    .to(files('discounts'), { uid: 'discounts-files' });

  orders
    .keyBy((one) => one.country)
    .topN({
      uid: 'best',
      n: 3,
      compare: (a, b) => b.cents - a.cents,
      codec: order,
      output: json<{ country: string; best: number[] }>(),
      result: (best, country) => ({ country, best: best.map((one) => one.cents) }),
    })
    .to(files('best'), { uid: 'best-files' });

  orders
    .keyBy((one) => one.customer)
    .deduplicate({ uid: 'first-orders', ttl: { days: 30 } })
    .mapAsync(async (one, { signal }) => `${one.id} ${await customerName(one.customer, signal)}`, {
      uid: 'welcome',
      order: 'unordered',
      concurrency: 20,
      fallback: (one) => `${one.id} nobody knows`,
    })
    .to(files('welcome'), { uid: 'welcome-files' });
});
