import { MillraceError } from '@millrace/kernel';

const roles = ['state', 'compactor'] as const;
type Role = (typeof roles)[number];

/** What a process of this program is to do, and the arguments that are left. Throws `bad-setting`. */
export function readRole(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): { readonly role: Role; readonly rest: readonly string[] } {
  const at = argv.findIndex((word) => word === '--role' || word.startsWith('--role='));
  const flag = argv[at]?.startsWith('--role=') === true ? argv[at].slice('--role='.length) : argv[at + 1];
  const given = (at < 0 ? env['MILLRACE_STATE_SERVICE_ROLE'] : (flag ?? '')) ?? 'state';
  const role = roles.find((one) => one === given);
  if (role === undefined) {
    const text = `setting "role" is ${JSON.stringify(given)}: it is ${roles.join(' or ')}. Set --role or MILLRACE_STATE_SERVICE_ROLE.`;
    throw new MillraceError('bad-setting', text, { details: { setting: 'role', value: given } });
  }
  const words = argv[at]?.startsWith('--role=') === true ? 1 : 2;
  return { role, rest: at < 0 ? argv : argv.toSpliced(at, words) };
}
