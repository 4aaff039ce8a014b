/*
 * Logistics: joins orders with their shipments, whichever comes first. Both sides wait in map state, by order, for as
 * long as the time to live; the generator scales to any amount of state.
 */
import { generator, int64, job, json, jsonLines, string, struct } from '@millrace/streams';
import { z } from 'zod';
import { type Delivery, orderOf, shipmentOf } from './order.ts';

const options = z.strictObject({
  output: z.string().min(1).default('out/orders'),
  overwrite: z.boolean().default(false),
  orders: z.int().positive().default(100_000),
  /** Size of the note that each order carries. */
  noteBytes: z.int().min(0).max(100_000).default(64),
  ttlHours: z.number().positive().default(24),
  /** Orders and shipments together. */
  recordsPerSecond: z.number().positive().optional(),
});

const orderCodec = struct({ order: int64, customer: string, placedMs: int64, note: string });
const shipmentCodec = struct({ order: int64, shipment: int64, carrier: string, shippedMs: int64 });

export default job('orders', { options }, (flow, o) => {
  const perSecond = (share: number): number | undefined =>
    o.recordsPerSecond === undefined ? undefined : o.recordsPerSecond * share;
  const orders = flow.from(
    generator({
      record: (index) => orderOf(index, o.noteBytes),
      records: o.orders,
      recordsPerSecond: perSecond(1 / 3),
      codec: orderCodec,
    }),
    { uid: 'orders' },
  );
  const shipments = flow.from(
    generator({
      record: shipmentOf,
      records: o.orders * 2,
      recordsPerSecond: perSecond(2 / 3),
      codec: shipmentCodec,
    }),
    { uid: 'shipments' },
  );
  orders
    .keyBy((order) => order.order)
    .join(
      shipments.keyBy((shipment) => shipment.order),
      {
        uid: 'deliveries',
        left: { codec: orderCodec },
        right: { codec: shipmentCodec, id: (shipment) => `${shipment.shipment}` },
        ttl: Math.round(o.ttlHours * 3_600_000),
        output: json<Delivery>(),
        pair: (order, shipment) => ({
          order: order.order,
          shipment: shipment.shipment,
          customer: order.customer,
          carrier: shipment.carrier,
          waitedMs: shipment.shippedMs - order.placedMs,
        }),
      },
    )
    .to(jsonLines({ directory: o.output, overwrite: o.overwrite }), { uid: 'deliveries-files' });
});
