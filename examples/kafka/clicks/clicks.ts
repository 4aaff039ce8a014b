/*
 * From Kafka to Kafka: counts the clicks on each page, and tells each new count. Readers of committed records see every
 * count once, whatever fails in between.
 */
import { jsonValue, kafkaSink, kafkaSource } from '@millrace/kafka';
import { int64, job, json, string, struct, value } from '@millrace/streams';
import { z } from 'zod';

const options = z.strictObject({
  brokers: z.array(z.string()).min(1).default(['127.0.0.1:9092']),
  input: z.string().min(1).default('clicks'),
  output: z.string().min(1).default('counts'),
  /** Ends with the records that are there at the start. */
  bounded: z.boolean().default(false),
  recordsPerSecond: z.number().positive().optional(),
});

const click = struct({ page: string });

export default job('clicks', { options }, (flow, { brokers, input, output, bounded, recordsPerSecond }) => {
  const clicks = kafkaSource({
    brokers,
    topics: [input],
    decode: jsonValue<{ page: string }>,
    codec: click,
    group: 'clicks-job',
    stop: bounded ? 'latest' : undefined,
    recordsPerSecond,
  });
  flow
    .from(clicks, { uid: 'clicks' })
    .keyBy((one) => one.page)
    .process({
      uid: 'counts',
      state: { clicks: value(int64) },
      output: json<{ page: string; clicks: number }>(),
      async onRecord(_one, ctx) {
        const count = ((await ctx.state.clicks.get()) ?? 0) + 1;
        ctx.state.clicks.set(count);
        ctx.emit({ page: ctx.key, clicks: count });
      },
    })
    .to(kafkaSink({ brokers, topic: output, encode: (one) => ({ key: one.page, value: JSON.stringify(one) }) }), {
      uid: 'kafka',
    });
});
