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
  const stopAndExit = (): void => {
    stop().then(() => process.exit(0), fail);
  };
  process.once('SIGTERM', stopAndExit);
  process.once('SIGINT', stopAndExit);
  // The launcher may die without a word: then this input ends.
  if (process.env.MILLRACE_EXIT_WITH_STDIN === '1') {
    process.stdin.on('end', stopAndExit).on('error', stopAndExit).resume();
  }
  await plane.polling;
  if (!stopping) say({ ready: 'control-plane', console: plane.consoleUrl });
}

/** One JSON line for whoever started this process. */
function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function fail(error: unknown): never {
  const json = errorToJson(error);
  say({ error: json });
  process.stderr.write(`${json.code}: ${json.message}\n`);
  process.exit(1);
}

main().catch(fail);
