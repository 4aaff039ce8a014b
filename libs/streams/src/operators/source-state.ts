import { MillraceError } from '@millrace/kernel';
import type { Split, SplitPosition } from '../api/source.ts';
import type { OperatorContext } from '../runtime/operator.ts';

/*
 * What a source keeps in a checkpoint: for each subtask one item with its watermark, and one for each split that is not
 * done. A restore looks at the items of all subtasks, because every subtask has to come to the same deal and to the
 * same watermark: the smallest of all. Operators after it may have been further, where one subtask was idle or some of
 * its inputs were; those that judge lateness keep their own watermark (`stored-watermark.ts`), so that records that
 * were late before are late again, and no window fires twice.
 */
type SourceItem =
  | { readonly kind: 'watermark'; readonly watermarkMs: number | 'none' | 'end' }
  | { readonly kind: 'split'; readonly split: Split; readonly position: number };

export interface RestoredSource {
  readonly watermarkMs: number;
  readonly positions: readonly SplitPosition[];
}

export function sourceItems(watermarkMs: number, positions: readonly SplitPosition[]): readonly SourceItem[] {
  const watermark =
    watermarkMs === Number.POSITIVE_INFINITY ? 'end' : watermarkMs === Number.NEGATIVE_INFINITY ? 'none' : watermarkMs;
  return [
    { kind: 'watermark', watermarkMs: watermark },
    ...positions.map(({ split, position }) => ({ kind: 'split', split, position }) as const),
  ];
}

/** What all subtasks together left; undefined on an empty start. */
export function restoreSource(context: OperatorContext): RestoredSource | undefined {
  const parts = context.slot.restore?.filter((part) => part.operator === context.uid && part.list !== undefined);
  if (parts === undefined || parts.length === 0) return undefined;
  let watermarkMs = Number.POSITIVE_INFINITY;
  const positions: SplitPosition[] = [];
  for (const item of parts.flatMap((part) => part.list as readonly SourceItem[])) {
    if (item.kind === 'split') positions.push({ split: item.split, position: item.position });
    else if (item.watermarkMs === 'none') watermarkMs = Number.NEGATIVE_INFINITY;
    else if (item.watermarkMs !== 'end') watermarkMs = Math.min(watermarkMs, item.watermarkMs);
  }
  return { watermarkMs, positions };
}

/** This subtask's splits: all in order, dealt round robin, so that each is read by exactly one subtask. */
export function dealSplits(
  positions: readonly SplitPosition[],
  subtask: number,
  parallelism: number,
): readonly SplitPosition[] {
  const ids = new Set(positions.map(({ split }) => split.id));
  if (ids.size !== positions.length) throw new MillraceError('invariant-broken', 'two splits of a source have one id');
  return positions
    .toSorted((a, b) => a.split.order - b.split.order || (a.split.id < b.split.id ? -1 : 1))
    .filter((_, index) => index % parallelism === subtask);
}
