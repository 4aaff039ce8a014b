/**
 * Checkpoints of a RocksDB directory from outside: RocksDB never changes a table file (`.sst`) once it is written, so a
 * link is as good as a copy; what says which of them make up the database is the manifest, a log that is only appended to.
 *
 * Flush first, write nothing meanwhile. Then: look at the manifest's name and length, link every table file that is there, look
 * again. When the manifest is as it was, every file that it names was there all the while: a compaction first makes its
 * files, then appends to the manifest, and only then removes the old ones. Else link what is new and look again. The manifest
 * is copied to the length seen, so what is appended later is not part of the checkpoint.
 */
import { copyFile, link, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '@millrace/kernel';

interface ManifestMark {
  readonly name: string;
  readonly sizeBytes: number;
}

const triesMax = 100;

/** Table files of the checkpoint with their sizes. `target` exists and is empty. */
export async function linkCheckpoint(source: string, target: string): Promise<ReadonlyMap<string, number>> {
  const linked = new Map<string, number>();
  let before = await markOf(source);
  for (let tries = 1; ; tries++) {
    for (const name of await readdir(source)) {
      if (!name.endsWith('.sst') || linked.has(name)) continue;
      if (await linkIfThere(join(source, name), join(target, name))) {
        linked.set(name, (await stat(join(target, name))).size);
      }
    }
    const after = await markOf(source);
    if (after.name === before.name && after.sizeBytes === before.sizeBytes) break;
    if (tries === triesMax) {
      throw new MillraceError(
        'kv-checkpoint-failed',
        `the files of ${source} changed ${triesMax} times under a checkpoint`,
      );
    }
    before = after;
  }
  await copyPrefix(join(source, before.name), join(target, before.name), before.sizeBytes);
  await writeFile(join(target, 'CURRENT'), `${before.name}\n`);
  return linked;
}

/** Puts a checkpoint's files into a new directory: tables by links, the manifest by copy, for RocksDB goes on in it. */
export async function linkDatabase(checkpoint: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(checkpoint)) {
    const [from, to] = [join(checkpoint, name), join(directory, name)];
    if (name.endsWith('.sst')) await link(from, to);
    else await copyFile(from, to);
  }
}

async function markOf(directory: string): Promise<ManifestMark> {
  const name = (await readFile(join(directory, 'CURRENT'), 'utf8')).trim();
  return { name, sizeBytes: (await stat(join(directory, name))).size };
}

/** False when the file has been removed meanwhile. */
async function linkIfThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function copyPrefix(from: string, to: string, sizeBytes: number): Promise<void> {
  const bytes = await readFile(from);
  const file = await open(to, 'wx');
  try {
    await file.writeFile(bytes.subarray(0, sizeBytes));
    await file.sync();
  } finally {
    await file.close();
  }
}
