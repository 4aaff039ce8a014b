import type { MillraceClient } from '@millrace/client';
import { eventually, TestStack } from '../support/test-stack.ts';

const roundsWanted = 1001;
/** Temporal ends a workflow at 51,200 events; ours continue as new long before. */
const eventsMax = 5000;
const progressMs = 10_000;

/** Rejects unless more than 1,000 rounds of one attempt are registered in time, none fails and every history is short. */
export async function soakRounds(timeMs: number): Promise<void> {
  await using run = await TestStack.start({ runners: 1, slots: 1 });
  const { client } = run;
  const job = await client.startJob({
    job: 'wordcount',
    checkpointIntervalMs: 100,
    options: { keys: 1000, records: 0, recordsPerSecond: 500 },
  });
  const begun = performance.now();
  let told = begun;
  const loop = await eventually(`${roundsWanted} rounds`, timeMs, async () => {
    const now = await job.loop();
    if (performance.now() - told > progressMs && now !== undefined) {
      told = performance.now();
      console.log(`${Math.round((told - begun) / 1000)} s: ${now.roundsDone} rounds done, ${now.roundsFailed} failed`);
    }
    return now !== undefined && now.roundsDone >= roundsWanted ? now : undefined;
  });
  const { plan, generation } = await job.status();
  const loopId = plan?.checkpointLoopId ?? '';
  const runsOfLoop = await countRuns(client, loopId);
  const lengths = { job: await historyLength(client, job.id), loop: await historyLength(client, loopId) };
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.log(
    `${loop.roundsDone} rounds in ${seconds} s, ${runsOfLoop} runs of the loop; events: job ${lengths.job}, loop ${lengths.loop}`,
  );
  const checks: readonly (readonly [boolean, string])[] = [
    [generation === 1, `the attempt was restarted: generation ${generation}`],
    [loop.roundsFailed === 0, `${loop.roundsFailed} rounds failed: ${loop.lastFailure}`],
    [runsOfLoop > 1, 'the loop did not continue as new'],
    [lengths.job < 200, `the history of the job has ${lengths.job} events`],
    [lengths.loop < eventsMax, `the history of the loop has ${lengths.loop} events`],
  ];
  const broken = checks.filter(([holds]) => !holds).map(([, words]) => words);
  if (broken.length > 0) throw new Error(broken.join('; '));
  await job.cancel();
}

async function historyLength(client: MillraceClient, workflowId: string): Promise<number> {
  return (await client.temporal.workflow.getHandle(workflowId).describe()).historyLength;
}

async function countRuns(client: MillraceClient, workflowId: string): Promise<number> {
  let count = 0;
  for await (const _ of client.temporal.workflow.list({ query: `WorkflowId = '${workflowId}'` })) count++;
  return count;
}
