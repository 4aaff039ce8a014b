/** For tools: what jobs have stored, read without them and never changed. */
export { type CheckpointFile, checkpointFiles } from './checkpoint-files.ts';
export { CheckpointState, type CheckpointStateOptions, type StatefulOperator } from './checkpoint-state.ts';
export {
  graceMsDefault,
  type JobSurvey,
  type SurveyedFile,
  type SurveyedHolder,
  type SurveyOptions,
  surveyJob,
} from './job-survey.ts';
export { type OpenedJobs, openStoredJobs } from './open-stored-jobs.ts';
export { decodedToPlain, parseKey, toPlain } from './plain-json.ts';
export { checkpointsOf, type StoredCheckpoint, StoredJobs, type StoredJobsOptions } from './stored-jobs.ts';
export { type Problem, type VerifyOptions, type VerifyProgress, type VerifyReport, verifyJob } from './verify.ts';
