import type { Logger } from '@millrace/telemetry';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';

/**
 * Sets Temporal's process-wide runtime up: its log goes to ours, and signals to the process are left to the composition
 * root. Once per process, before anything connects.
 */
export function installTemporalRuntime(log: Logger): void {
  const logger = new DefaultLogger('INFO', ({ level, message, meta }) => {
    const fields = { ...meta };
    if (level === 'ERROR') log.error(message, fields);
    // Of normal life: runners serve activities only, and failures reach whoever waits for them.
    else if (level === 'WARN' && !message.startsWith('No workflows registered')) log.warn(message, fields);
    else log.debug(message, fields);
  });
  const filter = makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' });
  Runtime.install({ logger, shutdownSignals: [], telemetryOptions: { logging: { filter, forward: {} } } });
}
