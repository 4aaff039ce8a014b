import { spawnSync } from 'node:child_process';
import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { openDfs } from './open-dfs.ts';

const options = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };
const bytes = new TextEncoder().encode('x');
const made: string[] = [];
afterEach(async () => {
  for (const directory of made.splice(0)) await fs.rm(directory, { recursive: true });
});

async function newDirectory(): Promise<string> {
  const directory = await fs.mkdtemp(join(tmpdir(), 'millrace open-'));
  made.push(directory);
  return directory;
}

describe('the setting that names the file system', () => {
  it('may be a path or a file URI, and both mean the same directory', async () => {
    const directory = await newDirectory();
    await (await openDfs(directory, options)).put('a', bytes);
    const uri = pathToFileURL(directory).href;
    const dfs = await openDfs(uri, options);
    expect(dfs.uri).toBe(uri);
    expect(await dfs.readAll('a')).toEqual(bytes);
    expect(await (await openDfs(`${uri}?fsync=false`, options)).readAll('a')).toEqual(bytes);
  });

  it('may be memory:, new each time', async () => {
    await (await openDfs('memory:', options)).put('a', bytes);
    expect(await (await openDfs('memory:', options)).readAll('a')).toBeUndefined();
  });

  it.each([
    '',
    's3:///x',
    's3://bucket/x?pathstyle=true',
    's3://bucket/x?pathStyle=yes',
    's3://bucket/x?pathStyle=true&pathStyle=true',
    's3://bucket/x?endpoint=127.0.0.1:7070',
    's3://bucket/x?requestsPerSecond=0',
    's3://bucket/x?partBytes=1m',
    's3://bucket/%ff',
    'hdfs:///x',
    'hdfs://host:port/x',
    'hdfs://host/a/../b',
    'hdfs://host/x?replication=3',
    'http://x/',
    'file:state',
    'file://host/x',
    'file:///x?sync=1',
    'file:///x?fsync=no',
  ])('refuses %j, naming the setting and the value', async (uri) => {
    await expect(openDfs(uri, { ...options, setting: 'storage.root' })).rejects.toMatchObject({
      code: 'bad-setting',
      kind: 'setup',
      message: expect.stringContaining('storage.root'),
      details: { setting: 'storage.root', value: uri },
    });
  });

  it.each(['s3://key:secret@bucket/x', 'hdfs://me:secret@host/x'])(
    'refuses credentials in %j and does not repeat them',
    async (uri) => {
      const error = await openDfs(uri, options).catch((e: unknown) => e);
      expect(error).toMatchObject({ code: 'bad-setting' });
      expect(JSON.stringify(error) + String(error)).not.toContain('secret');
    },
  );

  it('does not load the AWS SDK for a local directory', async () => {
    const script = `
      import { openDfs } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)};
      import { registerHooks } from 'node:module';
      const loaded = [];
      registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
      await openDfs('memory:', { clock: { nowMs: () => 0 }, telemetry: { metrics: { counter: () => ({}), histogram: () => ({}) } } });
      await openDfs('s3://', {}).catch(() => undefined);
      console.log(JSON.stringify(loaded));
    `;
    const node = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const loaded = JSON.parse(node.stdout || '[]') as string[];
    expect(loaded.some((url) => url.endsWith('/s3/open-s3.ts'))).toBe(true);
    expect(loaded.findIndex((url) => url.includes('@aws-sdk'))).toBeGreaterThan(
      loaded.findIndex((url) => url.endsWith('/s3/open-s3.ts')),
    );
  });
});
