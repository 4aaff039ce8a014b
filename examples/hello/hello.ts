import {
  boundedOutOfOrderness,
  generator,
  int64,
  job,
  json,
  jsonLines,
  string,
  struct,
  tumbling,
} from '@millrace/streams';
import { z } from 'zod';

const options = z.strictObject({
  output: z.string().min(1).default('out/hello'),
  overwrite: z.boolean().default(false),
  orders: z.int().positive().default(10_000),
});

const order = struct({ customer: string, cents: int64, placedMs: int64 });

/** What each customer spends in each minute. */
export default job('hello', { options }, (flow, { output, overwrite, orders }) => {
  const source = generator({
    records: orders,
    record: (i) => ({ customer: `c${i % 7}`, cents: 100 + (i % 50), placedMs: i * 1000 }),
    codec: order,
  });
  flow
    .from(source, { uid: 'orders', timestamp: (o) => o.placedMs, watermarks: boundedOutOfOrderness({ seconds: 5 }) })
    .keyBy((o) => o.customer)
    .window(tumbling({ minutes: 1 }), { uid: 'minutes' })
    .aggregate({
      accumulator: struct({ orders: int64, cents: int64 }),
      output: json<{ customer: string; minute: string; orders: number; cents: number }>(),
      create: () => ({ orders: 0, cents: 0 }),
      add: (sum, o) => ({ orders: sum.orders + 1, cents: sum.cents + o.cents }),
      result: (sum, customer, window) => ({ customer, minute: new Date(window.startMs).toISOString(), ...sum }),
    })
    .to(jsonLines({ directory: output, overwrite }), { uid: 'files' });
});
