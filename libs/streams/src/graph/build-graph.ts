import { Flow } from '../api/flow.ts';
import type { Job, OptionsJson } from '../api/job.ts';
import { parseOptions } from '../api/options.ts';
import { GraphBuilder } from './graph-builder.ts';
import type { JobGraph } from './job-graph.ts';

/**
 * The job's graph for these options. Refuses bad options (`job-options`) and graphs that cannot run (`job-graph`)
 * before anything starts. Every slot builds its own; equal options give equal graphs.
 */
export function buildGraph(job: Job, options: OptionsJson = {}): JobGraph {
  const parsed = parseOptions(job, options);
  const builder = new GraphBuilder();
  job.build(new Flow(builder), parsed as never);
  return builder.finish(job.name);
}
