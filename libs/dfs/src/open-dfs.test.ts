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
    's3://bucket/x',
    'hdfs://host/x',
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
});
