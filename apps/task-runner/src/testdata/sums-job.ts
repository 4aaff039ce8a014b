import { float64, generator, int64, job, jsonLines, struct } from '@millrace/streams';
import { z } from 'zod';

const options = z.object({
  records: z.int(),
  recordsPerSecond: z.number(),
  output: z.string(),
  /** Index of a record whose handler throws; none by default. */
  failAt: z.int().optional(),
  /** Index of a record at which the thread ends, and of one that never lets the thread go. */
  exitAt: z.int().optional(),
  spinAt: z.int().optional(),
});

const total = struct({ key: int64, count: int64, sum: float64 });

/** Running sums of ten keys: small, and its exact result is known. */
export default job('sums', { options }, (flow, { records, recordsPerSecond, output, failAt, exitAt, spinAt }) => {
  flow
    .from(generator({ records, recordsPerSecond, record: (n) => ({ key: n % 10, n }) }), { uid: 'numbers' })
    .map(
      (record) => {
        if (record.n === failAt) throw new Error(`no more than ${failAt}`);
        if (record.n === exitAt) process.exit(3);
        while (record.n === spinAt);
        return record;
      },
      { uid: 'check' },
    )
    .keyBy((record) => record.key)
    .aggregate({
      uid: 'sum',
      accumulator: struct({ count: int64, sum: float64 }),
      output: total,
      create: () => ({ count: 0, sum: 0 }),
      add: (state, record) => ({ count: state.count + 1, sum: state.sum + record.n }),
      result: (state, key) => ({ key, ...state }),
    })
    .to(jsonLines({ directory: output }), { uid: 'files' });
});
