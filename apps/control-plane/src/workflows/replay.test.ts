import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noTelemetry } from '@millrace/telemetry';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { installTemporalRuntime } from '../worker/runtime.ts';
import { workerTracing } from '../worker/tracing.ts';
import { bundleWorkflows } from '../worker/workflow-bundle.ts';

const directory = fileURLToPath(new URL('../testdata/', import.meta.url));
const histories = globSync('*.history.json', { cwd: directory })
  .sort()
  .map((file) => join(directory, file));
let workflowBundle: { readonly code: string };

beforeAll(async () => {
  installTemporalRuntime(noTelemetry.log);
  workflowBundle = await bundleWorkflows(noTelemetry.log);
}, 60_000);

test('there are histories to replay', () => {
  expect(histories.length).toBeGreaterThanOrEqual(4);
});

test.each(histories.map((path) => [basename(path, '.history.json'), path]))(
  'workflows of today replay the recorded history of %s',
  async (_, path) => {
    const { workflowId, events } = JSON.parse(readFileSync(path, 'utf8')) as { workflowId: string; events: string };
    const history = proto.temporal.api.history.v1.History.decode(Buffer.from(events, 'base64'));
    const replay = Worker.runReplayHistory({ workflowBundle, ...workerTracing(undefined) }, history, workflowId);
    await expect(replay).resolves.toBeUndefined();
  },
);
