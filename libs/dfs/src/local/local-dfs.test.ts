import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isKind, MillraceError, systemClock, systemRandom } from '@millrace/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalDfs } from './local-dfs.ts';
import { localError } from './local-errors.ts';
import { LocalWriter } from './local-writer.ts';

const options = { clock: systemClock, random: systemRandom };
const bytes = new TextEncoder().encode('x');

let directory: string;
let dfs: LocalDfs;
beforeEach(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'millrace-local-'));
  dfs = await LocalDfs.open(directory, options);
});
afterEach(() => fs.rm(directory, { recursive: true }));

const temporaries = (): Promise<string[]> => fs.readdir(join(directory, '.millrace-tmp'));

describe('a directory as file system', () => {
  it('is made when it is missing and shows the same files to everyone who opens it', async () => {
    const nested = join(directory, 'new/root');
    const first = await LocalDfs.open(nested, options);
    await first.put('a/b', bytes);
    expect(await (await LocalDfs.open(nested, options)).readAll('a/b')).toEqual(bytes);
  });

  it('leaves no temporary file and no empty directory behind', async () => {
    await dfs.put('deep/er/file', bytes);
    await dfs.putIfAbsent('deep/er/file', bytes);
    await dfs.putIfAbsent('deep/er/other', bytes);
    const writer = await dfs.createWriter('deep/er/third');
    await writer.append(bytes);
    expect(await temporaries()).toHaveLength(1);
    await writer.abort();
    await dfs.remove('deep/er/file');
    await dfs.remove('deep/er/other');
    expect(await temporaries()).toEqual([]);
    expect(await fs.readdir(directory)).toEqual(['.millrace-tmp']);
  });

  it('clears what a crashed writer left a day ago and spares what is being written', async () => {
    await fs.writeFile(join(directory, '.millrace-tmp/old'), 'x');
    await fs.utimes(join(directory, '.millrace-tmp/old'), new Date(0), new Date(0));
    await fs.writeFile(join(directory, '.millrace-tmp/new'), 'x');
    await LocalDfs.open(directory, options);
    expect(await temporaries()).toEqual(['new']);
  });

  it('goes on when someone clears its temporary directory', async () => {
    await fs.rm(join(directory, '.millrace-tmp'), { recursive: true });
    await dfs.put('a', bytes);
    expect(await dfs.readAll('a')).toEqual(bytes);
  });

  it('shows nothing of its temporary directory and lets nobody write there', async () => {
    await expect(dfs.put('.millrace-tmp/x', bytes)).rejects.toMatchObject({ code: 'dfs-bad-path' });
    await fs.writeFile(join(directory, '.millrace-tmp/x'), 'x');
    const found: string[] = [];
    for await (const entry of dfs.list('')) found.push(entry.path);
    expect(found).toEqual([]);
  });

  it('says which path is in the way when a name is both file and directory', async () => {
    await dfs.put('a', bytes);
    await dfs.put('d/x', bytes);
    for (const call of [
      () => dfs.put('a/b', bytes),
      () => dfs.putIfAbsent('a/b', bytes),
      () => dfs.put('d', bytes),
      () => dfs.putIfAbsent('d', bytes),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'dfs-path-taken',
        message: expect.stringContaining(directory),
      });
    }
    expect(await temporaries()).toEqual([]);
  });

  it('refuses to open where a file is', async () => {
    await dfs.put('a', bytes);
    await expect(LocalDfs.open(join(directory, 'a'), options)).rejects.toMatchObject({ code: 'dfs-path-taken' });
  });

  it('reports a full disk as something to mend and publishes nothing', async () => {
    // Linux: every write to this device says "no space left".
    const handle = await fs.open('/dev/full', 'w');
    let published = false;
    const publish = async (): Promise<void> => {
      published = true;
    };
    const writer = new LocalWriter(handle, { temporary: join(directory, 'gone'), publish, fsync: true });
    await expect(writer.append(bytes)).rejects.toMatchObject({ code: 'dfs-no-space', kind: 'setup' });
    await expect(writer.close()).rejects.toBeInstanceOf(MillraceError);
    expect(published).toBe(false);
  });
});

describe('a failure of the operating system', () => {
  const failure = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

  it.each([
    ['ENOSPC', 'dfs-no-space', 'setup'],
    ['EDQUOT', 'dfs-no-space', 'setup'],
    ['EACCES', 'dfs-denied', 'setup'],
    ['EPERM', 'dfs-denied', 'setup'],
    ['EROFS', 'dfs-denied', 'setup'],
    ['EMFILE', 'dfs-unavailable', 'retry'],
    ['EIO', 'dfs-unavailable', 'retry'],
    ['EXDEV', 'dfs-unsupported', 'setup'],
    ['ENOTDIR', 'dfs-path-taken', 'input'],
  ] as const)('%s is %s, of kind %s, and names the path', (errno, code, kind) => {
    const error = localError(failure(errno), 'put', '/data/x');
    expect(error).toBeInstanceOf(MillraceError);
    expect(error.code).toBe(code);
    expect(isKind(error, kind)).toBe(true);
    expect(error.message).toContain('/data/x');
    expect(error.details).toMatchObject({ errno, operation: 'put', path: '/data/x' });
  });
});
