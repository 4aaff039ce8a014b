import type { MillraceClient } from '@millrace/client';

/** The activities of a round's workflow, in the order in which they were scheduled, as Temporal's history has them. */
export async function stepsOfRound(client: MillraceClient, id: string, checkpoint: number): Promise<readonly string[]> {
  const { events } = await client.temporal.workflow.getHandle(`${id}-checkpoint-${checkpoint}`).fetchHistory();
  return (events ?? []).flatMap((event) => {
    const name = event.activityTaskScheduledEventAttributes?.activityType?.name;
    return typeof name === 'string' ? [name] : [];
  });
}
