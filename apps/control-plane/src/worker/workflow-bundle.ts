import { fileURLToPath } from 'node:url';
import type { Logger } from '@millrace/telemetry';
import { bundleWorkflowCode } from '@temporalio/worker';
import { cachedBundle } from './bundle-cache.ts';
import { workflowInterceptorModules } from './tracing.ts';

/** The workflows and what wraps them, as one file for the sandbox. */
export function bundleWorkflows(log: Logger): Promise<{ readonly code: string }> {
  const interceptors = workflowInterceptorModules();
  return cachedBundle(interceptors, () =>
    bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('../workflows/index.ts', import.meta.url)),
      workflowInterceptorModules: [...interceptors],
      logger: {
        log: (_level, message) => log.debug(message),
        trace: () => undefined,
        debug: () => undefined,
        info: (message) => log.debug(message),
        warn: (message) => log.warn(message),
        error: (message) => log.error(message),
      },
    }),
  );
}
