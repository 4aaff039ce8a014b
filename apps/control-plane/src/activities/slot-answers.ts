import { MillraceError } from '@millrace/kernel';
import type { Json } from '@millrace/proto/control';
import { z } from 'zod';
import type { RoundStep } from './contract.ts';

/** What the control plane reads of a SlotSnapshot (@millrace/streams); the rest it passes on as it is. */
const slotSnapshot = z.looseObject({
  checkpoint: z.int(),
  subtask: z.int(),
  ended: z.boolean(),
  operators: z.array(
    z.looseObject({
      table: z.looseObject({ bytesPut: z.number(), bytesLinked: z.number() }).optional(),
      inFlight: z.looseObject({ file: z.looseObject({ sizeBytes: z.number() }).optional() }).optional(),
    }),
  ),
});

export interface SlotAnswers {
  /** In the order of subtasks. */
  readonly slots: readonly Json[];
  readonly bytesPut: number;
  readonly bytesLinked: number;
  readonly last: boolean;
}

/** The parts of a checkpoint put together; rejects unless every subtask answered once, for this round. */
export function collectAnswers(texts: readonly string[], step: RoundStep): SlotAnswers {
  const parsed = texts.map((text) => ({ json: JSON.parse(text) as Json, slot: slotSnapshot.parse(JSON.parse(text)) }));
  parsed.sort((a, b) => a.slot.subtask - b.slot.subtask);
  const complete =
    parsed.length === step.parallelism &&
    parsed.every(({ slot }, i) => slot.subtask === i && slot.checkpoint === step.checkpoint);
  if (!complete) {
    const got = parsed.map(({ slot }) => `${slot.subtask} (checkpoint ${slot.checkpoint})`).join(', ');
    throw new MillraceError(
      'checkpoint-incomplete',
      `Round ${step.checkpoint} needs the subtasks 0 to ${step.parallelism - 1} and got: ${got || 'none'}.`,
    );
  }
  let bytesPut = 0;
  let bytesLinked = 0;
  for (const { slot } of parsed) {
    for (const { table, inFlight } of slot.operators) {
      bytesPut += (table?.bytesPut ?? 0) + (inFlight?.file?.sizeBytes ?? 0);
      bytesLinked += table?.bytesLinked ?? 0;
    }
  }
  return { slots: parsed.map((p) => p.json), bytesPut, bytesLinked, last: parsed.every(({ slot }) => slot.ended) };
}
