/** Composition root of a compactor process. */
import { openDfs } from '@millrace/dfs';
import { systemClock as clock, systemRandom as random } from '@millrace/kernel';
import { compact, type MergeJson } from '@millrace/lsm';
import { compactionQueue } from '@millrace/proto/control';
import { MetricsServer, startTelemetry } from '@millrace/telemetry';
import { installTemporalRuntime, KeptWorker } from '@millrace/temporal';
import { CompactActivity } from './compact-activity.ts';
import { CompactorMetrics } from './compactor-metrics.ts';
import type { CompactorSettings } from './settings.ts';

export interface Compactor {
  /** host:port of the metrics endpoint. */
  readonly metrics: string | undefined;
  /** Gives up what is under way, which another compactor then does. */
  stop(): Promise<void>;
}

/** Takes tasks as soon as Temporal can be reached, and keeps trying. */
export async function startCompactor(settings: CompactorSettings): Promise<Compactor> {
  const running = await startTelemetry({ service: 'compactor', clock, env: process.env });
  const { telemetry } = running;
  installTemporalRuntime(telemetry.log);
  const dfs = await openDfs(settings.state, { clock, random, telemetry, setting: 'state' });
  const metrics = new CompactorMetrics(telemetry.metrics, clock);
  const activity = new CompactActivity({
    dfs,
    merge: (description, options) => compact(description as unknown as MergeJson, options),
    clock,
    random,
    telemetry,
    metrics,
  });
  const worker = new KeptWorker({
    address: settings.temporalAddress,
    namespace: settings.namespace,
    identity: `compactor-${process.pid}`,
    worker: {
      taskQueue: compactionQueue,
      activities: { compact: activity.compact },
      maxConcurrentActivityTaskExecutions: settings.concurrency,
    },
    clock,
    random,
    log: telemetry.log,
  });
  const endpoint = new MetricsServer(() => [{ families: running.metrics.collect() }]);
  const { metricsPort } = settings;
  const host = '127.0.0.1';
  const port = metricsPort === undefined ? undefined : await endpoint.listen(metricsPort, host);
  worker.start();
  return {
    metrics: port === undefined ? undefined : `${host}:${port}`,
    stop: async () => {
      await worker.stop();
      endpoint.close();
      await dfs.close();
      await running.shutdown();
    },
  };
}
