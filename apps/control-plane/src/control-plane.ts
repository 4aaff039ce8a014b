import type { Dfs } from '@millrace/dfs';
import type { Clock, Random } from '@millrace/kernel';
import type { Telemetry, TraceContext } from '@millrace/telemetry';
import type { WorkerOptions } from '@temporalio/worker';
import { controlActivities } from './activities/control-activities.ts';
import type { FailPoint } from './activities/fail-points.ts';
import { operationActivities } from './activities/operations.ts';
import { RunnerClients } from './activities/runner-clients.ts';
import { consoleApp } from './console/app.ts';
import { JobsView } from './console/jobs-view.ts';
import { serveConsole } from './console/serve.ts';
import type { ControlSettings } from './settings.ts';
import { RetentionQueue } from './storage/retention-queue.ts';
import { Sweeper } from './storage/sweeper.ts';
import { UfsControlStorage } from './storage/ufs-control-storage.ts';
import { ControlWorker } from './worker/control-worker.ts';
import { TemporalSteering } from './worker/temporal-steering.ts';

export interface ControlPlaneDeps {
  readonly settings: ControlSettings;
  readonly dfs: Dfs;
  readonly workflowBundle: { readonly code: string };
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  readonly failPoint: FailPoint;
  readonly activeSpan: () => TraceContext | undefined;
  readonly tracing?: Pick<WorkerOptions, 'interceptors' | 'sinks'>;
  readonly metrics: () => string | Promise<string>;
}

export interface ControlPlane {
  readonly consoleUrl: string;
  /** Resolves when workflows are polled for; rejects with what an operator has to mend. */
  readonly polling: Promise<void>;
  /** Idempotent. */
  stop(): Promise<void>;
}

/** One control-plane process: console first, so that people see it while it waits for Temporal, then the worker. */
export async function startControlPlane(deps: ControlPlaneDeps): Promise<ControlPlane> {
  const { settings, clock, random, telemetry, failPoint, activeSpan } = deps;
  const storage = new UfsControlStorage(deps);
  const runners = new RunnerClients();
  const sweeper = new Sweeper({ storage, clock, telemetry });
  const retention = new RetentionQueue({ storage, clock, telemetry });
  const { log } = telemetry;
  const steering = new TemporalSteering({ address: settings.temporalAddress, namespace: settings.namespace, clock });
  const worker = new ControlWorker({
    address: settings.temporalAddress,
    namespace: settings.namespace,
    activities: {
      ...controlActivities({
        checkpointMode: settings.checkpointMode,
        storage,
        runners,
        sweeper,
        retention,
        failPoint,
        clock,
        telemetry,
        activeSpan,
      }),
      ...operationActivities({ storage, steering, failPoint, clock, activeSpan }),
    },
    workflowBundle: deps.workflowBundle,
    ...(deps.tracing === undefined ? {} : { tracing: deps.tracing }),
    clock,
    random,
    log,
  });
  const jobs = new JobsView({ address: settings.temporalAddress, namespace: settings.namespace, storage, runners });
  const app = consoleApp({ jobs, metrics: deps.metrics, healthy: () => worker.polling });
  const console = await serveConsole(app, settings.consoleHost, settings.consolePort);
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await worker.stop();
    await retention.close();
    await sweeper.close();
    await console.close();
    await jobs.close();
    await steering.close();
    runners.close();
  };
  return {
    consoleUrl: console.url,
    polling: worker.start(),
    stop: () => (stopped ??= stop()),
  };
}
