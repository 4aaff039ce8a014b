import { openDfs } from '@millrace/dfs';
import { errorToJson, systemClock, systemRandom } from '@millrace/kernel';
import { renderPrometheus, startTelemetry } from '@millrace/telemetry';
import { activeTraceContext } from '@millrace/telemetry/otel';
import { failPointsFrom } from './activities/fail-points.ts';
import { startControlPlane } from './control-plane.ts';
import { controlSettings } from './settings.ts';
import { installTemporalRuntime } from './worker/runtime.ts';
import { workerTracing } from './worker/tracing.ts';
import { bundleWorkflows } from './worker/workflow-bundle.ts';

/** Composition root of a control-plane process; settings come from the environment (settings.ts). */
async function main(): Promise<void> {
  const settings = controlSettings(process.env);
  const crash = (): never => {
    process.kill(process.pid, 'SIGKILL');
    throw new Error('not reached');
  };
  const failPoint = failPointsFrom(settings.failPoint, crash);
  const running = await startTelemetry({ service: 'control-plane', clock: systemClock, env: process.env });
  const { telemetry } = running;
  const shared = { clock: systemClock, random: systemRandom, telemetry };
  installTemporalRuntime(telemetry.log);
  const [dfs, workflowBundle] = await Promise.all([
    openDfs(settings.state, { ...shared, setting: 'MILLRACE_STATE' }),
    bundleWorkflows(telemetry.log),
  ]);
  const plane = await startControlPlane({
    ...shared,
    settings,
    dfs,
    workflowBundle,
    failPoint,
    activeSpan: activeTraceContext,
    tracing: workerTracing(running.spans),
    metrics: () => renderPrometheus([{ families: running.metrics.collect() }]),
  });
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await plane.stop();
    await dfs.close();
    await running.shutdown();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stop().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      );
    });
  }
  await plane.polling;
  if (!stopping) process.stdout.write(`${JSON.stringify({ ready: 'control-plane', console: plane.consoleUrl })}\n`);
}

function fail(error: unknown): never {
  const { code, message } = errorToJson(error);
  process.stderr.write(`${JSON.stringify({ failed: 'control-plane', code, message })}\n`);
  process.exit(1);
}

main().catch(fail);
