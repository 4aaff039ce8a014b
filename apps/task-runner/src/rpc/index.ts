export type { AttemptCalls, BarrierCall, HostedAttempt } from './attempt-calls.ts';
export { RunnerServer } from './runner-server.ts';
