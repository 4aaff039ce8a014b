export type { AttemptDeps } from './attempt/attempt.ts';
export { Attempts } from './attempt/attempts.ts';
export { JobRegistry } from './jobs/job-registry.ts';
export { type RunnerSettings, readSettings } from './settings.ts';
