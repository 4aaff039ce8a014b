import { MillraceError } from '@millrace/kernel';

/**
 * Asynchronous work belongs into the handlers of keyed operators, which know how to order it: refused in words while
 * the job is built. `functions` are those that an operator calls, by name; others are left alone.
 */
export function refuseAsync(kind: string, functions: object): void {
  for (const [name, fn] of Object.entries(functions)) {
    if (typeof fn !== 'function' || fn.constructor.name !== 'AsyncFunction') continue;
    throw new MillraceError(
      'job-graph',
      `${kind} takes a synchronous function${name === kind ? '' : ` as ${name}`}; await inside process({ onRecord }) after keyBy`,
    );
  }
}
