import { MillraceError } from '@millrace/kernel';
import { msgpack } from '@millrace/state';
import { expect, it, describe as suite } from 'vitest';
import type { Flow } from '../api/flow.ts';
import { type Job, job, loadJob } from '../api/job.ts';
import type { StandardSchema } from '../api/standard-schema.ts';
import type { Stream } from '../api/stream.ts';
import { collect } from '../sinks/callback.ts';
import { jsonLines } from '../sinks/json-lines.ts';
import { generator } from '../sources/generator.ts';
import { buildGraph } from './build-graph.ts';
import { describe } from './describe.ts';

const numbers = generator({ record: (index) => index, records: 10 });

function failure(work: () => unknown): MillraceError {
  try {
    work();
  } catch (error) {
    return error as MillraceError;
  }
  throw new Error('nothing was refused');
}

function refusal(build: (flow: Flow) => void): string {
  const error = failure(() => buildGraph(job('refused', build)));
  expect(error.code).toBe('job-graph');
  return error.message;
}

const positive: StandardSchema<unknown, { rows: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (input) => {
      const rows = (input as { rows?: unknown }).rows;
      if (typeof rows === 'number' && rows > 0) return { value: { rows } };
      return { issues: [{ message: 'must be positive', path: ['limits', { key: 0 }, 'rows'] }] };
    },
  },
};

suite('building a job', () => {
  it('refuses a bad option before anything starts, naming its path', () => {
    let built = false;
    const bad = job('options', { options: positive }, () => {
      built = true;
    });
    const error = failure(() => buildGraph(bad, { rows: -1 }));
    expect(error).toMatchObject({ code: 'job-options', details: { path: 'options.limits[0].rows' } });
    expect(error.message).toContain('must be positive');
    expect(built).toBe(false);
  });

  it('refuses options that a job without a schema cannot know', () => {
    const error = failure(() =>
      buildGraph(
        job('none', () => undefined),
        { speed: 1 },
      ),
    );
    expect(error).toMatchObject({ code: 'job-options', details: { path: 'options.speed' } });
  });

  it('hands the parsed options to the job', () => {
    let rows = 0;
    const good = job('options', { options: positive }, (flow, options) => {
      rows = options.rows;
      flow.from(numbers).to(collect<number>([]));
    });
    buildGraph(good, { rows: 3 });
    expect(rows).toBe(3);
  });

  it('says which module exports no job', () => {
    expect(failure(() => loadJob({ default: {} }, './x.ts'))).toMatchObject({ code: 'job-module' });
    const real: Job = job('real', () => undefined);
    expect(loadJob({ default: real })).toBe(real);
  });

  it('refuses a job without a source', () => {
    expect(refusal(() => undefined)).toContain('no source');
  });

  it('refuses a stream that leads to no sink, naming its operator', () => {
    expect(refusal((flow) => void flow.from(numbers).map((n) => n, { uid: 'double' }))).toContain('double');
  });

  it('refuses two operators of one uid', () => {
    const twice = refusal((flow) => {
      flow.from(numbers, { uid: 'same' }).to(collect<number>([]), { uid: 'same' });
    });
    expect(twice).toContain('same');
  });

  it('refuses two file sinks in one directory', () => {
    const twice = refusal((flow) => {
      const stream = flow.from(numbers);
      stream.to(jsonLines({ directory: 'out' }), { uid: 'first' });
      stream.to(jsonLines({ directory: './out' }), { uid: 'second' });
    });
    expect(twice).toMatch(/first and second both write the directory .*out/);
  });

  it('refuses an asynchronous function where only a synchronous one can keep the order', () => {
    const message = refusal((flow) =>
      flow
        .from(numbers)
        // @ts-expect-error the compiler says it, too
        .map(async (n) => n)
        .to(collect<unknown>([])),
    );
    expect(message).toContain('map takes a synchronous function');
  });

  it('refuses keyBy where it would undo a broadcast or a partitioning of its own', () => {
    for (const kind of ['broadcast', 'partitionBy'] as const) {
      const message = refusal((flow) => {
        const stream = flow.from(numbers);
        const spread =
          kind === 'broadcast' ? stream.broadcast() : stream.partitionBy((n, parallelism) => n % parallelism);
        spread
          .keyBy((n) => n)
          .reduce((a, b) => a + b)
          .to(collect<number>([]));
      });
      expect(message).toContain(`keyBy after ${kind}`);
    }
  });

  it('refuses streams of two jobs that flow together', () => {
    let other: Stream<number> | undefined;
    buildGraph(
      job('other', (flow) => {
        other = flow.from(numbers);
        other.to(collect<number>([]));
      }),
    );
    for (const together of [
      (one: Stream<number>, two: Stream<number>) => one.union(two).to(collect<number>([])),
      (one: Stream<number>, two: Stream<number>) =>
        one
          .keyBy((n) => n)
          .connect(two.keyBy((n) => n))
          .process({ onLeft: () => undefined, onRight: () => undefined })
          .to(collect<never>([])),
    ]) {
      expect(refusal((flow) => together(flow.from(numbers), other as Stream<number>))).toContain('two jobs');
    }
  });

  it('names the operator and the mend where a handler may not wait', () => {
    const message = refusal((flow) =>
      flow
        .from(numbers)
        .keyBy((n) => n)
        .deduplicate()
        .connectBroadcast(flow.from(numbers), {
          uid: 'rules',
          broadcast: {},
          onRecord: () => undefined,
          // oxlint-disable-next-line typescript/no-misused-promises -- what a job author may write all the same
          onBroadcast: async () => undefined,
        })
        .to(collect<never>([])),
    );
    expect(message).toMatch(/rules takes a synchronous function as onBroadcast; await inside process/);
  });

  it('describes operators, edges and chains', () => {
    const graph = buildGraph(
      job('shape', (flow) => {
        const even = flow.from(numbers, { uid: 'numbers' }).filter((n) => n % 2 === 0, { uid: 'even' });
        even
          .keyBy((n) => n % 3)
          .reduce((a, b) => a + b, { uid: 'sum', codec: msgpack<number>() })
          .to(collect<number>([]), { uid: 'out' });
        even.to(collect<number>([]));
      }),
    );
    expect(describe(graph)).toEqual({
      operators: [
        { uid: 'numbers', kind: 'generator', chain: 0, stateful: true },
        { uid: 'even', kind: 'filter', chain: 0, stateful: false },
        { uid: 'sum', kind: 'reduce', chain: 1, stateful: true },
        { uid: 'out', kind: 'collect', chain: 1, stateful: false },
        { uid: 'collect-1', kind: 'collect', chain: 0, stateful: false },
      ],
      edges: [
        { from: 'numbers', to: 'even', partitioning: 'forward' },
        { from: 'even', to: 'sum', partitioning: 'hash' },
        { from: 'sum', to: 'out', partitioning: 'forward' },
        { from: 'even', to: 'collect-1', partitioning: 'forward' },
      ],
    });
  });
});
