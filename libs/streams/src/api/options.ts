import { MillraceError } from '@millrace/kernel';
import type { Job, OptionsJson } from './job.ts';
import type { StandardIssue } from './standard-schema.ts';

/** The job's options after its schema; `job-options` names the path of every value that is refused. */
export function parseOptions(job: Job, options: OptionsJson): unknown {
  if (job.options === undefined) {
    const unknown = Object.keys(options)[0];
    if (unknown === undefined) return {};
    throw optionsError(job, [{ message: 'the job takes no options', path: [unknown] }]);
  }
  const result = job.options['~standard'].validate(options);
  if (result instanceof Promise) {
    throw new MillraceError(
      'job-options',
      `the options schema of job ${job.name} is asynchronous; use a synchronous one`,
    );
  }
  if (result.issues !== undefined) throw optionsError(job, result.issues);
  return result.value;
}

function optionsError(job: Job, issues: readonly StandardIssue[]): MillraceError {
  const lines = issues.map((issue) => `${pathOf(issue)}: ${issue.message}`);
  return new MillraceError('job-options', `options of job ${job.name}: ${lines.join('; ')}`, {
    details: { job: job.name, path: issues[0] === undefined ? 'options' : pathOf(issues[0]) },
  });
}

function pathOf(issue: StandardIssue): string {
  let path = 'options';
  for (const step of issue.path ?? []) {
    const key = typeof step === 'object' ? step.key : step;
    path += typeof key === 'number' ? `[${key}]` : `.${String(key)}`;
  }
  return path;
}
