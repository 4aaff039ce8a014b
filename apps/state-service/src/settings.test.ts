import { expect, it } from 'vitest';
import { helpText, readSettings } from './settings.ts';

it('takes a flag before the environment before the default', () => {
  const env = { MILLRACE_STATE: '/state', MILLRACE_STATE_SERVICE_PORT: '1', MILLRACE_STATE_CACHE: '2m' };
  expect(readSettings(['--port', '2', '--backend', 'memory'], env)).toMatchObject({
    state: '/state',
    port: 2,
    backend: 'memory',
    cache: 2 * 1024 * 1024,
    host: '127.0.0.1',
  });
});

it.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1'])('serves on %s', (host) => {
  expect(readSettings(['--host', host], {}).host).toBe(host);
});

it.each(['0.0.0.0', '::', '10.0.0.1', 'example.com', '127.0.0.1.example.com', '1127.0.0.1'])(
  'does not serve on %s, which others can reach',
  (host) => {
    expect(() => readSettings([], { MILLRACE_STATE_SERVICE_HOST: host })).toThrow(
      expect.objectContaining({ code: 'bad-setting', details: { setting: 'host', value: host } }),
    );
  },
);

it.each([
  ['port', '70000'],
  ['backend', 'cassandra'],
  ['memtable', '1k'],
  ['tables-max', '0'],
])('refuses --%s %s', (flag, value) => {
  expect(() => readSettings([`--${flag}`, value], {})).toThrow(expect.objectContaining({ code: 'bad-setting' }));
});

it('explains every setting', () => {
  for (const flag of ['state', 'backend', 'host', 'port', 'tables-max', 'cache', 'memtable', 'drain-ms']) {
    expect(helpText()).toContain(`--${flag}`);
  }
});
