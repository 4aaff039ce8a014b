import { type Delivery, orderOf, shipmentOf } from './order.ts';

/** Every delivery of so many orders, as sorted lines of JSON: a plain loop over the shipments. */
export function expectedDeliveries(orders: number): string[] {
  const lines: string[] = [];
  for (let index = 0; index < orders * 2; index++) {
    const { order, shipment, carrier, shippedMs } = shipmentOf(index);
    if (order < 0 || order >= orders) continue;
    const { customer, placedMs } = orderOf(order, 0);
    lines.push(
      JSON.stringify({ order, shipment, customer, carrier, waitedMs: shippedMs - placedMs } satisfies Delivery),
    );
  }
  return lines.sort();
}
