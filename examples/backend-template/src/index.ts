/** The door: the state-service loads this module by `--backend ./examples/backend-template` and calls the function. */
import { MillraceError } from '@millrace/kernel';
import type { CreateStateBackend } from '@millrace/state';
import { TemplateStore } from './store.ts';

export const createStateBackend: CreateStateBackend = ({ directory, options, clock }) => {
  // What `--backend-options` says: check all of it, and name what is wrong.
  const unknown = Object.keys(options)[0];
  if (unknown !== undefined) {
    const text = `the backend template has no option "${unknown}". Set --backend-options to {}.`;
    throw new MillraceError('bad-setting', text, { details: { setting: 'backendOptions' } });
  }
  return new TemplateStore(directory, clock);
};
