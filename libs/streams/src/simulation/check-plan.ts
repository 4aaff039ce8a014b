import { SeededRandom } from '@millrace/kernel';
import { keyText } from './key.ts';
import { Plan, type PlanLimits } from './plan.ts';
import { type RunEnd, type RunOptions, runPlan } from './run-plan.ts';
import type { Publications, Published } from './transaction-sink.ts';
import { recordsOf } from './walk.ts';

export interface CaseOptions extends RunOptions, Partial<PlanLimits> {}

export interface CaseEnd extends Omit<RunEnd, 'publications'> {
  readonly kinds: readonly string[];
  readonly records: number;
}

/** Draws a job from the seed, runs it, and compares what it publishes. Rejects with the seed, the job and what is wrong. */
export async function randomCase(seed: number, options: CaseOptions = {}): Promise<CaseEnd> {
  const { records = 120, operators = 7 } = options;
  const random = new SeededRandom(seed);
  const plan = new Plan(random, { records, operators });
  const failed = (words: string, cause?: unknown): Error =>
    new Error(`seed ${seed}: ${words}\n${plan.describe()}`, { cause });
  let end: RunEnd;
  try {
    end = await runPlan(plan, random, options);
  } catch (error) {
    throw failed(error instanceof Error ? error.message : String(error), error);
  }
  const wrong = plan.ends.flatMap((stream) => {
    const published = (end.publications.get(stream.name) as Publications).values;
    // Subtasks publish side by side: a key that has moved between them has no order of its own.
    const inOrder = new Set(end.parallelisms).size === 1;
    return differences(stream, published, inOrder).map((words) => `${stream.name}: ${words}`);
  });
  if (wrong.length > 0) throw failed(wrong.slice(0, 12).join('\n  '));
  return { kinds: plan.kinds, records: plan.records, parallelisms: end.parallelisms, replayedBytes: end.replayedBytes };
}

type Ended = Plan['ends'][number];

function differences({ facts, lines }: Ended, published: readonly Published[], inOrder: boolean): string[] {
  const expected = recordsOf(lines);
  if (facts.changes === true) return tableDifferences(published, expected, inOrder);
  const text = ({ item, timeMs }: Published): string =>
    `${JSON.stringify(item)}${facts.time === 'unknown' ? '' : ` at ${timeMs}`}`;
  const counts = new Map<string, number>();
  for (const one of expected) counts.set(text(one), (counts.get(text(one)) ?? 0) + 1);
  for (const one of published) counts.set(text(one), (counts.get(text(one)) ?? 0) - 1);
  const wrong = [...counts].flatMap(([row, n]) =>
    n === 0 ? [] : [`${n > 0 ? 'missing' : 'too many'} (${Math.abs(n)}) ${row}`],
  );
  const { order } = facts;
  if (wrong.length > 0 || order === undefined || !inOrder) return wrong;
  const [want, got] = [expected, published].map((list) => Map.groupBy(list, ({ item }) => keyText(item, order)));
  return [...(want ?? [])].flatMap(([key, rows]) => {
    const own = (got?.get(key) ?? []).map(text);
    const at = rows.findIndex((row, i) => text(row) !== own[i]);
    return at < 0 ? [] : [`order of ${key}: ${text(rows[at] as Published)} expected as number ${at}, not ${own[at]}`];
  });
}

/** The table that the changes come to; nothing is taken back before it is there. */
function tableDifferences(published: readonly Published[], expected: readonly Published[], inOrder: boolean): string[] {
  const wrong: string[] = [];
  const rows = new Map<string, number>();
  const add = ({ item }: Published, sign: number): number => {
    const row = JSON.stringify({ ...item, v: 0 });
    rows.set(row, (rows.get(row) ?? 0) + sign * item.v);
    return rows.get(row) as number;
  };
  for (const one of published)
    if (add(one, 1) < 0 && inOrder) wrong.push(`${one.item.id} is retracted before it is inserted`);
  for (const one of expected) add(one, -1);
  for (const [row, n] of rows) if (n !== 0) wrong.push(`${n < 0 ? 'missing' : 'too many'} ${row}`);
  return wrong;
}
