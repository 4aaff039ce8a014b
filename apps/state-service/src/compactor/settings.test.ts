import { expect, test } from 'vitest';
import { compactorHelp, readCompactorSettings } from './settings.ts';

test('a flag wins over the variable, the variable over the default', () => {
  const env = { MILLRACE_TEMPORAL_ADDRESS: 'there:1', MILLRACE_NAMESPACE: 'n', MILLRACE_STATE: 'file:///s' };
  expect(readCompactorSettings(['--temporal-address', 'here:2', '--metrics-port', '0'], env)).toEqual({
    temporalAddress: 'here:2',
    namespace: 'n',
    state: 'file:///s',
    concurrency: 2,
    metricsPort: 0,
  });
  expect(readCompactorSettings([], {}).metricsPort).toBeUndefined();
  expect(compactorHelp()).toContain('--concurrency');
});

test.each([
  [['--concurrency', '0'], /setting "concurrency" is "0": .* Set --concurrency or MILLRACE_COMPACTOR_CONCURRENCY/],
  [['--temporal-address', 'here'], /setting "temporalAddress" is "here": write host:port/],
  [['--port', '1'], /--port/],
])('%j is refused, naming the setting', (argv, message) => {
  expect(() => readCompactorSettings(argv, {})).toThrow(message);
});
