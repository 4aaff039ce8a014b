import { MillraceError } from '@millrace/kernel';
import type { AccessScope } from './ports.ts';

/** Refuses an access of a record that is already finished. */
export function checkOpen(scope: AccessScope): void {
  if (scope.open) return;
  throw new MillraceError('state-late-access', 'state was touched after its record was finished: await every access');
}
