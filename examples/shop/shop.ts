/*
 * A shop: orders, payments and customers. Small pieces, each of which the guide (docs/guide.md) shows.
 */
import { join } from 'node:path';
import {
  boundedOutOfOrderness,
  generator,
  int64,
  job,
  json,
  jsonLines,
  map,
  reducing,
  type SchemaOutput,
  session,
  sideTag,
  string,
  struct,
  tumbling,
  value,
} from '@millrace/streams';
import { z } from 'zod';
import { centsPerUnit, orderOf, paymentOf } from './events.ts';

const options = z.strictObject({
  output: z.string().min(1).default('out/shop'),
  overwrite: z.boolean().default(false),
  orders: z.int().positive().default(10_000),
});

const order = struct({ id: int64, customer: string, amount: int64, currency: string, placedMs: int64 });
const payment = struct({ order: int64, cents: int64, paidMs: int64 });
const large = sideTag('large', order);
const late = sideTag('late', order);

const patienceMs = 10 * 60_000;
const timestamp = (o: { placedMs: number }): number => o.placedMs;

export interface Customer {
  readonly customer: string;
  readonly orders: number;
  readonly cents: number;
  readonly largest: number;
  readonly euros: number;
}

export default job('shop', { options }, (flow, o: SchemaOutput<typeof options>) => {
  const files = <T>(name: string) => jsonLines<T>({ directory: join(o.output, name), overwrite: o.overwrite });

  const orders = flow.from(generator({ records: o.orders, record: orderOf, codec: order }), {
    uid: 'orders',
    timestamp,
    watermarks: boundedOutOfOrderness({ seconds: 10 }),
  });

  const customers = orders
    .keyBy((one) => one.customer)
    .process({
      uid: 'customers',
      state: {
        total: value(struct({ orders: int64, cents: int64 })),
        byCurrency: map(string, int64, { ttl: { durationMs: 30 * 24 * 3_600_000, refresh: 'read-and-write' } }),
        largest: reducing(int64, Math.max),
      },
      output: json<Customer>(),
      async onRecord(one, ctx) {
        const { state } = ctx;
        // Await anything: records of other customers go on meanwhile, the next one of this customer waits.
        const cents = one.amount * (await centsPerUnit(one.currency));
        const [total, inCurrency] = await Promise.all([state.total.get(), state.byCurrency.get(one.currency)]);
        state.total.set({ orders: (total?.orders ?? 0) + 1, cents: (total?.cents ?? 0) + cents });
        state.byCurrency.set(one.currency, (inCurrency ?? 0) + one.amount);
        await state.largest.add(cents);
        if (cents > 9_000) ctx.side(large, one);
        ctx.emit({
          customer: ctx.key,
          ...((await state.total.get()) ?? { orders: 0, cents: 0 }),
          largest: (await state.largest.get()) ?? 0,
          euros: (await state.byCurrency.get('EUR')) ?? 0,
        });
      },
    });
  customers.to(files('customers'), { uid: 'customers-files' });
  customers.sideOutput(large).to(files('large'), { uid: 'large-files' });

  const payments = flow.from(generator({ records: o.orders, record: paymentOf, codec: payment }), {
    uid: 'payments',
    timestamp: (one) => one.paidMs,
    watermarks: boundedOutOfOrderness({ seconds: 10 }),
  });
  const byOrder = payments.keyBy((one) => one.order);

  orders
    .keyBy((one) => one.id)
    .connect(byOrder)
    .process({
      uid: 'reminders',
      state: { order: value(order), paidMs: value(int64, { ttl: {} }) },
      output: json<{ order: number; customer: string }>(),
      onLeft(one, ctx) {
        ctx.state.order.set(one);
        ctx.timers.at(one.placedMs + patienceMs);
      },
      onRight(paid, ctx) {
        ctx.state.paidMs.set(paid.paidMs);
      },
      async onTimer(timeMs, ctx) {
        const [one, paidMs = Number.POSITIVE_INFINITY] = await Promise.all([
          ctx.state.order.get(),
          ctx.state.paidMs.get(),
        ]);
        if (one !== undefined && paidMs > timeMs) ctx.emit({ order: one.id, customer: one.customer });
        ctx.state.order.clear();
        ctx.state.paidMs.clear();
      },
    })
    .to(files('reminders'), { uid: 'reminders-files' });

  orders
    .keyBy((one) => one.id)
    .intervalJoin(byOrder, {
      uid: 'paid',
      lower: 0,
      upper: { minutes: 10 },
      left: order,
      right: payment,
      output: json<{ order: number; waitedMs: number }>(),
      pair: (one, paid) => ({ order: one.id, waitedMs: paid.paidMs - one.placedMs }),
    })
    .to(files('paid'), { uid: 'paid-files' });

  const hourly = orders
    .keyBy((one) => one.currency)
    .window(tumbling({ hours: 1 }), { uid: 'hourly', allowedLateness: { minutes: 5 }, late })
    .aggregate({
      accumulator: int64,
      output: json<{ currency: string; hourMs: number; amount: number }>(),
      create: () => 0,
      add: (sum, one) => sum + one.amount,
      result: (amount, currency, window) => ({ currency, hourMs: window.startMs, amount }),
    });
  hourly.to(files('hourly'), { uid: 'hourly-files' });
  hourly.sideOutput(late).to(files('late'), { uid: 'late-files' });

  orders
    .keyBy((one) => one.customer)
    .window(session({ minutes: 1 }), { uid: 'visits' })
    .process({
      output: json<{ customer: string; fromMs: number; orders: readonly number[] }>(),
      process: (records, { key, window, emit }) =>
        emit({ customer: key, fromMs: window.startMs, orders: records.map((one) => one.id) }),
    })
    .to(files('visits'), { uid: 'visits-files' });
});
