import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { SpanPipeline } from '@millrace/telemetry';
import {
  makeWorkflowExporter,
  OpenTelemetryActivityInboundInterceptor,
  OpenTelemetryActivityOutboundInterceptor,
  type OpenTelemetrySinks,
} from '@temporalio/interceptors-opentelemetry-v2';
import type { InjectedSinks, WorkerOptions } from '@temporalio/worker';

/**
 * Modules around every workflow: spans of workflows and their steps, and a new trace for each round. They are always in
 * the bundle, whether spans are exported or not, so that a workflow does not depend on how its worker is set up.
 */
export function workflowInterceptorModules(): readonly string[] {
  const require = createRequire(import.meta.url);
  return [
    require.resolve('@temporalio/interceptors-opentelemetry-v2/lib/workflow-interceptors'),
    fileURLToPath(new URL('../workflows/interceptors.ts', import.meta.url)),
  ];
}

export type WorkerTracing = Required<Pick<WorkerOptions, 'sinks'>> & Pick<WorkerOptions, 'interceptors'>;

/** What a worker needs to export spans; with no pipeline, only what takes the sandbox's spans and drops them. */
export function workerTracing(pipeline: SpanPipeline | undefined): WorkerTracing {
  if (pipeline === undefined) return { sinks: drop };
  const sinks: InjectedSinks<OpenTelemetrySinks> = {
    exporter: makeWorkflowExporter(pipeline.processor, pipeline.resource),
  };
  return {
    sinks,
    interceptors: {
      activity: [
        (context) => ({
          inbound: new OpenTelemetryActivityInboundInterceptor(context),
          outbound: new OpenTelemetryActivityOutboundInterceptor(context),
        }),
      ],
    },
  };
}

const drop: InjectedSinks<OpenTelemetrySinks> = { exporter: { export: { fn: () => undefined } } };
