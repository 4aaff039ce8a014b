import { pathToFileURL } from 'node:url';
import { MillraceError } from '@millrace/kernel';
import type { JobDescription } from '@millrace/proto';
import { buildGraph, describe, type Job, loadJob } from '@millrace/streams';
import type { Logger } from '@millrace/telemetry';
import { codeHash } from './code-hash.ts';
import { jobFiles } from './job-files.ts';

/** A job's code on this machine. */
export interface FoundJob {
  readonly job: Job;
  /** Absolute path of its module. */
  readonly module: string;
  readonly codeHash: string;
}

/** The jobs that the setting `jobs` names, by their names. Looks at the files anew for each question. */
export class JobRegistry {
  readonly #entries: readonly string[];
  readonly #workingDirectory: string;
  readonly #log: Logger;

  constructor(entries: readonly string[], workingDirectory: string, log: Logger) {
    this.#entries = entries;
    this.#workingDirectory = workingDirectory;
    this.#log = log;
  }

  /** Rejects with `job-unknown`, which lists the known names, or with `job-module` when the module does not load. */
  async find(name: string): Promise<FoundJob> {
    const known = await this.#load();
    const found = known.get(name);
    if (found !== undefined) return found;
    const names = [...known.keys()].sort();
    const list = names.length === 0 ? 'none is known' : `known are: ${names.join(', ')}`;
    throw new MillraceError(
      'job-unknown',
      `no job '${name}' here; ${list} (setting "jobs": ${this.#entries.join(', ')})`,
      {
        details: { job: name, known: names.join(',') },
      },
    );
  }

  /** As `find`, and the code must be that with which the attempt was planned. */
  async require(name: string, hash: string): Promise<FoundJob> {
    const found = await this.find(name);
    if (found.codeHash === hash) return found;
    throw new MillraceError(
      'job-code-differs',
      `job '${name}': the code here is ${found.codeHash}, the attempt's is ${hash}`,
      {
        details: { job: name, here: found.codeHash, planned: hash },
      },
    );
  }

  /** What the job consists of with these options; refuses options and graphs that cannot run. */
  async describe(name: string, options: { readonly [name: string]: unknown }): Promise<JobDescription> {
    const found = await this.find(name);
    const graph = describe(buildGraph(found.job, options));
    return { job: name, codeHash: found.codeHash, operators: graph.operators, edges: graph.edges };
  }

  async #load(): Promise<ReadonlyMap<string, FoundJob>> {
    const jobs = new Map<string, FoundJob>();
    for (const entry of this.#entries) {
      for (const { path, named } of jobFiles(entry, this.#workingDirectory)) {
        const found = await this.#loadOne(path, named);
        if (found === undefined) continue;
        const other = jobs.get(found.job.name);
        if (other !== undefined && other.module !== path) {
          const message = `two modules define job '${found.job.name}': ${other.module} and ${path}`;
          throw new MillraceError('bad-setting', message, { details: { setting: 'jobs' } });
        }
        jobs.set(found.job.name, found);
      }
    }
    return jobs;
  }

  async #loadOne(path: string, named: boolean): Promise<FoundJob | undefined> {
    try {
      const hash = await codeHash(path);
      // With the hash in the name, changed code is loaded anew.
      const loaded: unknown = await import(`${pathToFileURL(path).href}?code=${hash}`);
      return { job: loadJob(loaded, path), module: path, codeHash: hash };
    } catch (error) {
      if (named) throw MillraceError.from(error, 'job-module');
      this.#log.debug('not a job module', { path, error: MillraceError.from(error).message });
      return undefined;
    }
  }
}
