import { fileURLToPath } from 'node:url';
import type { Logger } from '@millrace/telemetry';
import { bundleWorkflowCode, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/** The workflows as one file for the sandbox. `interceptors` are modules that wrap them. */
export function bundleWorkflows(
  log: Logger,
  interceptors: readonly string[] = [],
): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
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
  });
}
