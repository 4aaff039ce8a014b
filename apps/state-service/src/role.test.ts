import { expect, test } from 'vitest';
import { readRole } from './role.ts';

test.each([
  [['--port', '1'], {}, { role: 'state', rest: ['--port', '1'] }],
  [['--role', 'compactor', '--state', 'x'], {}, { role: 'compactor', rest: ['--state', 'x'] }],
  [['--state', 'x', '--role=compactor'], {}, { role: 'compactor', rest: ['--state', 'x'] }],
  [['--role', 'state'], { MILLRACE_STATE_SERVICE_ROLE: 'compactor' }, { role: 'state', rest: [] }],
  [[], { MILLRACE_STATE_SERVICE_ROLE: 'compactor' }, { role: 'compactor', rest: [] }],
])('the role of %j and %j', (argv, env, expected) => {
  expect(readRole(argv, env)).toEqual(expected);
});

test.each([[['--role']], [['--role', 'cleaner']]])('%j is refused, naming the setting', (argv) => {
  expect(() => readRole(argv, {})).toThrow(/setting "role" .* Set --role or MILLRACE_STATE_SERVICE_ROLE/);
});
