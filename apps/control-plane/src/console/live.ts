import type { AttemptPlan } from '@millrace/proto/control';
import { z } from 'zod';
import type { RunnerClients } from '../activities/runner-clients.ts';
import { distinctRunners } from '../workflows/runners.ts';

/** What the console reads of a SlotStats (@millrace/streams). */
const slotStats = z.looseObject({
  subtask: z.int(),
  recordsIn: z.number(),
  recordsOut: z.number(),
  watermarkMs: z.number().nullable(),
  inFlight: z.number(),
  buffered: z.number(),
  ended: z.boolean(),
});

/** A job right now, over all its slots, as its runners tell it. */
export interface LiveView {
  readonly generation: number;
  /** Records that the sources have read since the attempt began. */
  readonly recordsRead: number;
  readonly recordsWritten: number;
  /** Smallest watermark over the slots, epoch milliseconds; null before the first, 8.64e15 at the end. */
  readonly watermarkMs: number | null;
  readonly slots: readonly z.output<typeof slotStats>[];
}

const timeoutMs = 2000;

/** Asks the runners of an attempt; rejects when one does not answer. */
export async function askLive(runners: RunnerClients, plan: AttemptPlan): Promise<LiveView> {
  const answers = await runners.each(distinctRunners(plan.slots), (client, runner) =>
    client.call.status(
      { target: { job: plan.id, generation: BigInt(plan.generation), runnerId: runner.runnerId } },
      { timeoutMs },
    ),
  );
  const slots = answers
    .flatMap((answer) => answer.slotStats)
    .map((text) => slotStats.parse(JSON.parse(text)))
    .sort((a, b) => a.subtask - b.subtask);
  const watermarks = slots.map((slot) => slot.watermarkMs);
  return {
    generation: plan.generation,
    recordsRead: slots.reduce((total, slot) => total + slot.recordsIn, 0),
    recordsWritten: slots.reduce((total, slot) => total + slot.recordsOut, 0),
    watermarkMs: watermarks.some((ms) => ms === null) ? null : Math.min(...(watermarks as number[])),
    slots,
  };
}
