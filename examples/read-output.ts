import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The lines of all published part files of a directory, sorted. Hidden files are not output. */
export async function readOutput(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => name.startsWith('part-'));
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== '')).sort();
}
