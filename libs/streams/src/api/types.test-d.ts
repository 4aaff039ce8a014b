/*
 * What the types refuse. Checked by the compiler alone (`npm run types`): an expectation that does not fail is an error.
 */
import { array, int64, map, msgpack, string, value } from '@millrace/state';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { parquetFiles } from '../sources/parquet.ts';
import { job } from './job.ts';
import { sideTag } from './side-tag.ts';
import { tumbling } from './windows.ts';

interface Order {
  readonly id: string;
  readonly amount: number;
}
const orders = generator<Order>({ record: (index) => ({ id: `o${index}`, amount: index }) });
const late = sideTag<Order>('late');

export default job('types', (flow) => {
  const stream = flow.from(orders, { uid: 'orders', timestamp: (order) => order.amount });

  // @ts-expect-error a field that the record does not have
  stream.map((order) => order.price);
  // @ts-expect-error operators with state only after keyBy
  stream.process({ onRecord: () => undefined });
  // @ts-expect-error windows only after keyBy
  stream.window(tumbling(1000));
  // @ts-expect-error a key has a canonical form; functions have none
  stream.keyBy((order) => () => order.id);
  // @ts-expect-error a sink of other records
  stream.to(collect<string>([]));

  const keyed = stream.keyBy((order) => order.id);
  keyed
    .process({
      uid: 'ok',
      state: { total: value(int64), seen: map(string, array(int64)) },
      output: msgpack<{ id: string; total: number }>(),
      async onRecord(order, ctx) {
        const total = ((await ctx.state.total.get()) ?? 0) + order.amount;
        ctx.state.total.set(total);
        ctx.emit({ id: ctx.key, total });
        ctx.side(late, order);

        // @ts-expect-error only declared states
        ctx.state.count.get();
        // @ts-expect-error a state of numbers
        ctx.state.total.set('many');
        // @ts-expect-error a map is no value
        void ctx.state.seen.get();
        // @ts-expect-error only what `output` says
        ctx.emit({ id: ctx.key });
        // @ts-expect-error the key is a string
        ctx.key.toFixed();
        // @ts-expect-error the side output takes orders
        ctx.side(late, 1);
      },
    })
    .map((result) => result.total)
    .to(collect<number>([]));

  keyed.process({
    onRecord: (order, ctx) => {
      // @ts-expect-error nothing can be emitted without `output`
      ctx.emit(order);
    },
  });

  keyed
    .window(tumbling({ days: 1 }), { late })
    .aggregate({
      accumulator: int64,
      output: msgpack<number>(),
      create: () => 0,
      add: (sum, order) => sum + order.amount,
      result: (sum, _key, window) => sum + window.startMs,
    })
    .to(collect<number>([]));

  // @ts-expect-error a late tag of other records
  keyed.window(tumbling(1000), { late: sideTag<number>('n') });

  const byNumber = stream.keyBy((order) => order.amount);
  keyed.join(
    // @ts-expect-error keys of two types
    byNumber,
    { left: { codec: msgpack<Order>() }, right: { codec: msgpack<Order>() }, output: msgpack<Order>(), pair: (a) => a },
  );

  flow
    .from(parquetFiles({ files: ['x'], columns: { date: 'timestamp', note: 'string?' } }))
    .map((row) => {
      const date: number = row.date;
      // @ts-expect-error the column may hold nulls
      const note: string = row.note;
      return [date, note];
    })
    .to(collect<(string | number)[]>([]));
});
