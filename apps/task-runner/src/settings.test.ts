import { SeededRandom } from '@millrace/kernel';
import { describe, expect, it } from 'vitest';
import { diskCacheSettings, readSettings } from './settings.ts';

const read = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) => readSettings(argv, env, new SeededRandom(1));

describe('settings', () => {
  it('come from flags, else the environment, else defaults; sizes may have units', () => {
    const settings = read(['--slots', '3'], {
      MILLRACE_RUNNER_SLOTS: '5',
      MILLRACE_SLOT_MEMORY: '1g',
      MILLRACE_JOBS: 'a, b/*.ts',
    });
    expect(settings).toMatchObject({
      slots: 3,
      slotMemory: 1024 ** 3,
      jobs: ['a', 'b/*.ts'],
      frameBytes: 32 * 1024,
      temporalAddress: '127.0.0.1:7233',
    });
    expect(settings.runnerId).toMatch(/-[0-9a-f]{8}$/);
  });

  it('name the state-services, one or several, by themselves or by their addresses', () => {
    expect(read(['--state-service', 'kv:7300']).stateService).toEqual([{ name: 'kv:7300', address: 'kv:7300' }]);
    expect(read(['--state-service', 'a=kv1:7300,b=kv2:7300']).stateService).toEqual([
      { name: 'a', address: 'kv1:7300' },
      { name: 'b', address: 'kv2:7300' },
    ]);
    expect(read([]).stateService).toBeUndefined();
  });

  it('give a disk cache where the state is remote, or where one is named, or none', () => {
    expect(diskCacheSettings(read(['--state', 's3://bucket/millrace']))).toMatchObject({
      directory: expect.stringMatching(/disk-cache$/),
      bytesMax: 8 * 1024 ** 3,
      policy: 'history',
    });
    expect(diskCacheSettings(read(['--state', '/data/state']))).toBeUndefined();
    expect(diskCacheSettings(read(['--state', 'file:///data', '--disk-cache', '/ssd']))).toMatchObject({
      directory: '/ssd',
    });
    expect(diskCacheSettings(read(['--state', 'hdfs://host/x', '--disk-cache', 'off']))).toBeUndefined();
  });

  it.each([
    [
      ['--disk-cache-policy', 'mru'],
      /setting "diskCachePolicy" is "mru": .*--disk-cache-policy or MILLRACE_DISK_CACHE_POLICY/,
    ],
    [['--slots', 'many'], /setting "slots" is "many": .* Set --slots or MILLRACE_RUNNER_SLOTS\./],
    [
      ['--slot-memory', '1m'],
      /setting "slotMemory" is "1m": at least 128m\. Set --slot-memory or MILLRACE_SLOT_MEMORY\./,
    ],
    [['--frame-bytes', '10x'], /setting "frameBytes" is "10x": write bytes/],
    [['--temporal-address', 'here'], /setting "temporalAddress" is "here": write host:port/],
    [['--state-backend', 'disk'], /setting "stateBackend" is "disk"/],
    [
      ['--state-backend', 'remote'],
      /setting "stateService" is empty: .* Set --state-service or MILLRACE_STATE_SERVICE\./,
    ],
    [['--state-service', 'here'], /setting "stateService" is "here": write host:port/],
    [['--state-service', 'a:1,'], /setting "stateService" is "a:1,": write host:port/],
    [['--state-service', 'a=h:1,a=h:2'], /name each instance once/],
    [['--state-service-ca', '/no/such'], /setting "stateServiceCa" is "\/no\/such": there is no such file/],
    [['--frame-bytes', '1m', '--channel-window', '64k'], /"frameBytes" is larger than "channelWindowBytes"/],
    [['--sluts', '3'], /--sluts/],
  ])('are refused with the name and the mend: %j', (argv, message) => {
    expect(() => read(argv)).toThrow(message);
  });
});
