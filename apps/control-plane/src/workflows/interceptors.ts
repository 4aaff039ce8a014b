import { workflowTypes } from '@millrace/proto/control';
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** Header in which Temporal's OpenTelemetry interceptors pass the trace on. */
const traceHeader = '_tracer-data';

/** A round is a trace of its own: the loop that starts it lives as long as the attempt. */
export const interceptors = (): WorkflowInterceptors => ({
  outbound: [
    {
      startChildWorkflowExecution(input, next) {
        if (input.workflowType !== workflowTypes.checkpointRound) return next(input);
        const { [traceHeader]: _, ...headers } = input.headers;
        return next({ ...input, headers });
      },
    },
  ],
});
