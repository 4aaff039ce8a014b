import { OtlpSink, type SunkSpan } from '@millrace/telemetry/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stepsOfRound } from './support/rounds.ts';
import { TestStack } from './support/test-stack.ts';

const steps = ['barrier', 'drain', 'link', 'register'] as const;

describe('a checkpoint round of a job on two runners', () => {
  let sink: OtlpSink;
  let histories: readonly (readonly string[])[];
  let rounds: readonly SunkSpan[][];
  beforeAll(async () => {
    sink = await OtlpSink.start();
    histories = await runTraced(sink);
    rounds = roundsOf(sink.spans);
  });
  afterAll(() => sink.close());

  test('is a workflow of four steps in Temporal', () => {
    expect(histories).toEqual([steps, steps, steps]);
  });

  test('is one connected trace, which begins at its workflow', () => {
    expect(rounds.length).toBeGreaterThanOrEqual(3);
    for (const spans of rounds) {
      expect(spans.filter((span) => span.parentSpanId === undefined).map(({ name }) => name)).toEqual([
        'RunWorkflow:checkpointRound',
      ]);
      const paths = spans.map((span) => sink.path(span));
      expect(paths.filter(([root]) => root !== 'RunWorkflow:checkpointRound')).toEqual([]);
      for (const step of steps) {
        expect(paths).toContainEqual(['RunWorkflow:checkpointRound', `StartActivity:${step}`, `RunActivity:${step}`]);
      }
    }
  });

  test('leads through the runners and their subtasks down to each object that is put, across processes and threads', () => {
    const subtask = [
      'RunWorkflow:checkpointRound',
      'StartActivity:barrier',
      'RunActivity:barrier',
      'Runner.InjectBarrier',
      'subtask.checkpoint',
    ];
    for (const spans of rounds) {
      const at = (...path: string[]): SunkSpan[] =>
        spans.filter((span) => sink.path(span).join('/') === [...subtask, ...path].join('/'));
      const subtasks = at().map(({ attributes }) => `${attributes.operator}-${attributes.subtask}`);
      expect(subtasks.sort()).toEqual(['count-0', 'count-1', 'records-0', 'records-1']);
      for (const part of ['subtask.align', 'subtask.drain', 'subtask.flush']) expect(at(part)).toHaveLength(4);
      const holders = at('state.snapshot', 'dfs.putIfAbsent');
      expect(holders.map(({ attributes }) => attributes['dfs.path'])).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/snapshots\/\d+\/count-0-/),
          expect.stringMatching(/snapshots\/\d+\/count-1-/),
        ]),
      );
      const tables = at('state.snapshot', 'lsm.flush', 'dfs.closeWriter');
      expect(new Set(tables.map(processOf)).size).toBe(2);
      // Tables are built by a thread of their own.
      for (const table of tables) expect(at('state.snapshot').map(threadOf)).not.toContain(threadOf(table));
      expect(new Set(spans.map(processOf)).size).toBe(3);
    }
  });
});

/** Runs a job to its end with every process sending its spans to the sink; the steps of its first rounds. */
async function runTraced(sink: OtlpSink): Promise<readonly (readonly string[])[]> {
  const env = Object.fromEntries(Object.entries(sink.env).map(([name, value]) => [name, String(value)]));
  await using run = await TestStack.start({ runners: 2, slots: 1, env });
  const job = await run.client.startJob({
    job: 'wordcount',
    parallelism: 2,
    checkpointIntervalMs: 500,
    options: { keys: 1000, records: 20_000, recordsPerSecond: 4000, output: run.path('out') },
  });
  await job.result();
  return await Promise.all([1, 2, 3].map((checkpoint) => stepsOfRound(run.client, job.id, checkpoint)));
}

/** The traces of rounds in which every subtask still worked: the last ones of a job meet ended sources. */
function roundsOf(spans: readonly SunkSpan[]): SunkSpan[][] {
  const traces = Map.groupBy(spans, (span) => span.traceId);
  const flushes = (trace: readonly SunkSpan[]): number => trace.filter(({ name }) => name === 'lsm.flush').length;
  return [...traces.values()].filter((trace) => flushes(trace) === 2);
}

function processOf(span: SunkSpan): string {
  return String(span.resource['process.pid']);
}

function threadOf(span: SunkSpan): string {
  return `${processOf(span)}/${span.resource['thread.id']}`;
}
