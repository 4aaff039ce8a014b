import type { CheckpointContents } from '@millrace/proto/control';
import { z } from 'zod';

const holding = z.looseObject({ holders: z.array(z.string()) });
const slot = z.looseObject({
  operators: z.array(
    z.looseObject({
      table: holding.optional(),
      inFlight: z.looseObject({ file: holding.optional() }).optional(),
    }),
  ),
});

/** Paths of the holder objects (snapshots of tables and of records in flight) that a checkpoint's parts name. */
export function holdersOf(contents: CheckpointContents): readonly string[] {
  return contents.slots.flatMap((json) =>
    slot
      .parse(json)
      .operators.flatMap(({ table, inFlight }) => [...(table?.holders ?? []), ...(inFlight?.file?.holders ?? [])]),
  );
}
