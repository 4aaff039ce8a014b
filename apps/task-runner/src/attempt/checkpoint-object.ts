import type { Dfs } from '@millrace/dfs';
import { MillraceError } from '@millrace/kernel';
import type { AttemptPlan } from '@millrace/proto';
import type { OperatorSnapshot } from '@millrace/streams';
import { z } from 'zod';

/** What a runner reads of a checkpoint's object (`CheckpointContents`). */
const contents = z.looseObject({
  version: z.literal(1),
  id: z.string(),
  checkpoint: z.int(),
  maxParallelism: z.int(),
  slots: z.array(
    z.looseObject({
      subtask: z.int(),
      operators: z.array(z.looseObject({ operator: z.string(), subtask: z.int() })),
    }),
  ),
});

/** Every operator's part of the checkpoint that the plan starts from; undefined for an empty start. */
export async function readRestore(dfs: Dfs, plan: AttemptPlan): Promise<readonly OperatorSnapshot[] | undefined> {
  const path = plan.restoreFrom;
  if (path === null) return undefined;
  const bytes = await dfs.readAll(path);
  const details = { path, job: plan.id };
  if (bytes === undefined)
    throw new MillraceError('checkpoint-unreadable', `checkpoint ${path} does not exist`, { details });
  const parsed = contents.safeParse(parseJson(bytes));
  if (!parsed.success) {
    const why = z.prettifyError(parsed.error);
    throw new MillraceError('checkpoint-unreadable', `checkpoint ${path} cannot be read: ${why}`, { details });
  }
  if (parsed.data.maxParallelism !== plan.maxParallelism) {
    const text = `its key groups are ${parsed.data.maxParallelism}, the attempt's ${plan.maxParallelism}`;
    throw new MillraceError('checkpoint-unreadable', `checkpoint ${path} does not fit: ${text}`, { details });
  }
  return parsed.data.slots.flatMap((slot) => slot.operators as unknown as OperatorSnapshot[]);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
