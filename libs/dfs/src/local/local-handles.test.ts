import { promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom } from '@millrace/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalDfs } from './local-dfs.ts';
import { LocalHandles } from './local-handles.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

let directory: string;
beforeEach(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'millrace-handles-'));
});
afterEach(() => fs.rm(directory, { recursive: true }));

async function openDescriptors(): Promise<string[]> {
  const links = (await fs.readdir('/proc/self/fd')).map((fd) => fs.readlink(`/proc/self/fd/${fd}`).catch(() => ''));
  return (await Promise.all(links)).filter((link) => link.startsWith(directory));
}

describe('a file read again and again', () => {
  it('is seen anew at once when another process replaces, removes or makes it again', async () => {
    const options = { clock: systemClock, random: systemRandom, fsync: false };
    const reader = await LocalDfs.open(directory, options);
    const other = await LocalDfs.open(directory, options);
    for (let i = 0; i < 20; i++) {
      await other.put('a', bytesOf(`version ${i}`));
      // A hard link to the old file, as a backup makes, must not keep it in sight.
      await fs.link(join(directory, 'a'), join(directory, `backup-${i}`));
      expect(await reader.read('a', 0, 100)).toEqual(bytesOf(`version ${i}`));
      expect(await reader.read('a', 8, 1)).toEqual(bytesOf(`${i}`).subarray(0, 1));
      if (i % 5 !== 0) continue;
      await other.remove('a');
      await expect(reader.read('a', 0, 100)).rejects.toMatchObject({ code: 'dfs-not-found' });
    }
    await reader.close();
    await other.close();
  });

  it('keeps no more handles than allowed, none of removed files for long, and none after close', async () => {
    const handles = new LocalHandles(4);
    const paths = Array.from({ length: 10 }, (_, i) => join(directory, `${i}`));
    for (const path of paths) await fs.writeFile(path, path);
    const range = { offset: 0, length: 1000 };
    const reads = paths.flatMap((path) => [handles.read(path, range), handles.read(path, range)]);
    expect((await Promise.all(reads)).map((bytes) => bytes?.length)).toEqual(
      paths.flatMap((p) => [p.length, p.length]),
    );
    expect(handles.size).toBe(4);
    await fs.rm(paths[9] as string);
    for (let i = 0; i < 300; i++) await handles.read(paths[0] as string, { offset: 0, length: 1 });
    expect((await openDescriptors()).filter((link) => link.includes('(deleted)'))).toEqual([]);
    handles.close();
    expect(handles.size).toBe(0);
    expect(await handles.read(paths[0] as string, { offset: 0, length: 1 })).toHaveLength(1);
    await expect.poll(openDescriptors).toEqual([]);
  });
});
