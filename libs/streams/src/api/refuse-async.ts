import { MillraceError } from '@millrace/kernel';

/**
 * Asynchronous work belongs where it is ordered and bounded: refused in words while the job is built. `functions` are
 * those that an operator calls, by name, beside its `uid` and whatever else, which is left alone; those in `mayWait` may
 * be asynchronous.
 */
export function refuseAsync(kind: string, functions: object, mayWait: readonly string[] = []): void {
  const { uid } = functions as { readonly uid?: unknown };
  const operator = typeof uid === 'string' ? `${kind} ${uid}` : kind;
  for (const [name, fn] of Object.entries(functions)) {
    if (typeof fn !== 'function' || fn.constructor.name !== 'AsyncFunction' || mayWait.includes(name)) continue;
    throw new MillraceError(
      'job-graph',
      `${operator} takes a synchronous function${name === kind ? '' : ` as ${name}`}; await inside process({ onRecord }) after keyBy, or in mapAsync`,
      { details: { operator: typeof uid === 'string' ? uid : kind } },
    );
  }
}
