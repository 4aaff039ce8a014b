export type { AttemptCalls, HostedAttempt, PullTarget } from './attempt-calls.ts';
export { RunnerServer, type RunnerServerOptions } from './runner-server.ts';
