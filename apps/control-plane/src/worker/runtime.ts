import type { Logger } from '@millrace/telemetry';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';

/**
 * Sets Temporal's process-wide runtime up: its log goes to ours, and signals to the process are left to the composition
 * root. Once per process, before anything connects.
 */
export function installTemporalRuntime(log: Logger): void {
  const logger = new DefaultLogger('INFO', ({ level, message, meta }) => {
    const fields: Record<string, unknown> = { ...meta };
    // Failures of steps and attempts are part of life: they are repeated, and whoever waits for them hears of them.
    if (message === 'Activity failed' || message === 'Workflow failed') log.info(message, brief(fields));
    else if (level === 'ERROR') log.error(message, fields);
    else if (level === 'WARN') log.warn(message, fields);
    else log.debug(message, fields);
  });
  const filter = makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' });
  Runtime.install({ logger, shutdownSignals: [], telemetryOptions: { logging: { filter, forward: {} } } });
}

function brief(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { workflowId, activityType, attempt, error } = fields;
  const reason = error instanceof Error ? error.message : String(error);
  return { workflowId, reason, ...(activityType === undefined ? {} : { activityType, attempt }) };
}
