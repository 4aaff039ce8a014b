/*
 * What the types refuse. Checked by the compiler alone (`npm run types`): an expectation that does not fail is an error.
 */
import { array, int64, map, msgpack, string, value } from '@millrace/state';
import { collect } from '../sinks/callback.ts';
import { generator } from '../sources/generator.ts';
import { parquetFiles } from '../sources/parquet.ts';
import { job } from './job.ts';
import { sideTag } from './side-tag.ts';
import { globalWindow, session, tumbling } from './windows.ts';

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

  const counted = {
    accumulator: int64,
    output: msgpack<number>(),
    create: () => 0,
    add: (sum: number, order: Order) => sum + order.amount,
    result: (sum: number) => sum,
  };
  // @ts-expect-error sessions may become one: merge is missing
  keyed.window(session(1000)).aggregate(counted);
  keyed.window(session((order: Order) => order.amount)).aggregate({ ...counted, merge: (a, b) => a + b });
  // @ts-expect-error a gap by a field that the record does not have
  keyed.window(session((order: { price: number }) => order.price));
  // @ts-expect-error a global window emits only when a trigger says so
  keyed.window(globalWindow());
  keyed.window(tumbling(1000)).process({
    output: msgpack<number>(),
    process: (records, ctx) => {
      for (const order of records) ctx.emit(order.amount);
      // @ts-expect-error only what `output` says
      ctx.emit(ctx.key);
    },
  });

  // @ts-expect-error a late tag of other records
  keyed.window(tumbling(1000), { late: sideTag<number>('n') });

  const byNumber = stream.keyBy((order) => order.amount);
  keyed.join(
    // @ts-expect-error keys of two types
    byNumber,
    { left: { codec: msgpack<Order>() }, right: { codec: msgpack<Order>() }, output: msgpack<Order>(), pair: (a) => a },
  );

  // @ts-expect-error joins only after keyBy
  stream.join(keyed, {});
  // @ts-expect-error a function that waits is for mapAsync
  stream.map(async (order) => order.id);
  stream.mapAsync(async (order, { signal }) => (signal.aborted ? 0 : order.amount)).to(collect<number>([]));
  // @ts-expect-error the result is the number, not its promise
  stream.mapAsync(async (order) => order.amount).to(collect<string>([]));

  const sides = { left: { codec: msgpack<Order>() }, right: { codec: msgpack<Order>() }, output: int64 };
  keyed
    .outerJoin(keyed, { ...sides, kind: 'left', pair: (l, r) => l.amount + (r?.amount ?? 0) })
    .map(({ op, value: sum }) => (op === 'insert' ? sum : -sum))
    .to(collect<number>([]));
  // @ts-expect-error in a left join the right one may be missing
  keyed.outerJoin(keyed, { ...sides, kind: 'left', pair: (l, r) => l.amount + r.amount });
  // @ts-expect-error in a full join both may be missing
  keyed.outerJoin(keyed, { ...sides, kind: 'full', pair: (l, r) => l.amount + (r?.amount ?? 0) });
  const codecs = { left: msgpack<Order>(), right: msgpack<Order>(), output: int64 };
  keyed.intervalJoin(keyed, { ...codecs, lower: 0, upper: 1, pair: (l, r) => l.amount + r.amount });
  // @ts-expect-error in a right join the left one may be missing
  keyed.windowJoin(keyed, tumbling(1), { ...codecs, kind: 'right', pair: (l, r) => l.amount + r.amount });
  // @ts-expect-error a window that never ends cannot be joined
  keyed.windowJoin(keyed, globalWindow(), { ...codecs, pair: (l, r) => l.amount + r.amount });
  // @ts-expect-error without `kind: 'left'` what is not found is dropped, so `found` is there
  stream.lookupJoin({ lookup: () => 1, output: int64, pair: (_order, found: undefined) => found ?? 1 });

  keyed
    .connectBroadcast(stream, {
      broadcast: { limits: map(string, int64) },
      state: { total: value(int64) },
      output: int64,
      onBroadcast(order, maps, ctx) {
        maps.limits.set(order.id, order.amount);
        // @ts-expect-error no key, so no keyed state
        void ctx.state;
        // @ts-expect-error only declared maps
        void maps.limit;
        // @ts-expect-error a map of numbers
        maps.limits.set(order.id, order);
      },
      async onRecord(order, maps, ctx) {
        const limit: number | undefined = maps.limits.get(order.id);
        // @ts-expect-error handlers of records only read
        maps.limits.set(order.id, 1);
        ctx.emit(Math.min(limit ?? 0, (await ctx.state.total.get()) ?? 0));
      },
    })
    .to(collect<number>([]));

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
