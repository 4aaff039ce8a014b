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

it('serves others only encrypted, and only with a token', () => {
  const file = import.meta.filename;
  const all = ['--host', '0.0.0.0', '--tls-cert', file, '--tls-key', file, '--token-file', file];
  expect(readSettings(all, {})).toMatchObject({ host: '0.0.0.0', tlsCert: file, tokenFile: file });
  expect(() => readSettings(all.slice(0, -2), {})).toThrow('it needs --tls-cert, --tls-key and --token-file');
  expect(() => readSettings(['--tls-cert', file], {})).toThrow('a certificate and its key belong together');
});

it.each([
  ['port', '70000'],
  ['backend-options', '[1]'],
  ['backend-options', 'fast'],
  ['token-file', '/no/such/file'],
  ['memtable', '1k'],
  ['tables-max', '0'],
])('refuses --%s %s', (flag, value) => {
  expect(() => readSettings([`--${flag}`, value], {})).toThrow(expect.objectContaining({ code: 'bad-setting' }));
});

it('explains every setting', () => {
  for (const flag of [
    'state',
    'backend',
    'backend-options',
    'directory',
    'host',
    'tls-cert',
    'port',
    'tables-max',
    'cache',
    'memtable',
    'drain-ms',
  ]) {
    expect(helpText()).toContain(`--${flag}`);
  }
});
