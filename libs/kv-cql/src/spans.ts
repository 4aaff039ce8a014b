/**
 * What a table is made of. A span is a range of key groups and the layers that it is read through, newest first: the
 * table's own rows, and beneath them, after a fork or under another operator's name, those of the table it began with.
 * Nothing is copied when a table begins with another's snapshot. Pure.
 */
import type { KeyGroupRange } from '@millrace/kernel';
import { overlap } from '@millrace/state';
import { z } from 'zod';
import type { Lineage } from './lineage.ts';

/** Rows of one stored table, as a lineage sees them. */
export interface Layer {
  /** Id of the stored table. */
  readonly table: string;
  readonly buckets: number;
  readonly lineage: Lineage;
}

export interface Span {
  readonly keyGroups: KeyGroupRange;
  readonly layers: readonly Layer[];
}

const number = z.number().int().min(0);
export const spansSchema = z.array(
  z.object({
    keyGroups: z.object({ start: number, end: number }),
    layers: z.array(
      z.object({
        table: z.string(),
        buckets: z.number().int().min(1),
        lineage: z.array(z.object({ incarnation: number, sequence: number })),
      }),
    ),
  }),
);

/** The spans that lie in `range`, clipped to it. */
export function clipSpans(spans: readonly Span[], range: KeyGroupRange): readonly Span[] {
  return spans.flatMap(({ keyGroups, layers }) => {
    const common = overlap(keyGroups, range);
    return common === undefined ? [] : [{ keyGroups: common, layers }];
  });
}

/** The spans under a layer of the table's own; where that is the upper one already, its lineage becomes longer. */
export function continueSpans(spans: readonly Span[], own: Layer): readonly Span[] {
  return spans.map(({ keyGroups, layers }) => {
    const [upper, ...beneath] = layers;
    if (upper === undefined || upper.table !== own.table) return { keyGroups, layers: [own, ...layers] };
    return { keyGroups, layers: [{ ...upper, lineage: [...upper.lineage, ...own.lineage] }, ...beneath] };
  });
}

/** The spans as a snapshot keeps them: the upper layers end at `sequence`. Neighbours that are alike become one. */
export function endSpansAt(spans: readonly Span[], sequence: number): readonly Span[] {
  const ended: Span[] = [];
  for (const { keyGroups, layers } of spans) {
    const [upper, ...beneath] = layers as readonly [Layer, ...Layer[]];
    const lineage = upper.lineage.map((one, i) => (i === upper.lineage.length - 1 ? { ...one, sequence } : one));
    const span: Span = { keyGroups, layers: [{ ...upper, lineage }, ...beneath] };
    const last = ended.at(-1);
    if (last !== undefined && last.keyGroups.end + 1 === keyGroups.start && alike(last, span)) {
      ended[ended.length - 1] = { ...last, keyGroups: { start: last.keyGroups.start, end: keyGroups.end } };
    } else {
      ended.push(span);
    }
  }
  return ended;
}

function alike(a: Span, b: Span): boolean {
  return JSON.stringify(a.layers) === JSON.stringify(b.layers);
}
