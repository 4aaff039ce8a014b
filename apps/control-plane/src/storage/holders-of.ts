import type { CheckpointContents } from '@millrace/proto/control';
import { z } from 'zod';

const slot = z.looseObject({
  operators: z.array(z.looseObject({ table: z.looseObject({ holders: z.array(z.string()) }).optional() })),
});

/** Paths of the holder objects (tables' snapshots) that a checkpoint's parts name. */
export function holdersOf(contents: CheckpointContents): readonly string[] {
  return contents.slots.flatMap((json) =>
    slot.parse(json).operators.flatMap((operator) => operator.table?.holders ?? []),
  );
}
