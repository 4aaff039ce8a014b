/** Who a transaction belongs to. Generations are ordered within a lineage. */
export interface NameOwner {
  readonly job: string;
  readonly uid: string;
  readonly lineage: string;
}

/** What the names of all transactions of an operator begin with, of every attempt and subtask. */
export function namePrefix(prefix: string, { job, uid, lineage }: NameOwner): string {
  return `${prefix}${[job, lineage, uid].map(encodeURIComponent).join('/')}/`;
}

export function transactionName(
  prefix: string,
  { generation, subtask, index }: { readonly generation: number; readonly subtask: number; readonly index: number },
): string {
  return `${prefix}g${generation}/${subtask}/${index}`;
}

/** The generation in a name that `transactionName` made with this prefix; undefined for every other name. */
export function generationOf(prefix: string, name: string): number | undefined {
  if (!name.startsWith(prefix)) return undefined;
  const match = /^g(\d+)\/\d+\/\d+$/.exec(name.slice(prefix.length));
  return match === null ? undefined : Number(match[1]);
}
