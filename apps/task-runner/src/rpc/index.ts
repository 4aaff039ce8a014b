export type { AttemptCalls, HostedAttempt } from './attempt-calls.ts';
export { RunnerServer } from './runner-server.ts';
