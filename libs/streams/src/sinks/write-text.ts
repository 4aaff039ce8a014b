import { MillraceError } from '@millrace/kernel';
import type { OutputFiles } from './output-files.ts';

/** Where small files are written, and under which hidden names they are before they are whole. */
export interface Scratch {
  readonly files: OutputFiles;
  readonly nextName: () => string;
}

/** Writes a small file: whole and durable, or not at all. `new` does not replace one that is there, and answers false. */
export async function writeText(
  { files, nextName }: Scratch,
  { name, text, how }: { readonly name: string; readonly text: string; readonly how: 'new' | 'replace' },
): Promise<boolean> {
  const draft = nextName();
  const file = await files.create(draft);
  await file.append(new TextEncoder().encode(text));
  await file.sync();
  await file.close();
  const outcome = how === 'new' ? await files.move(draft, name) : await files.rename(draft, name);
  if (outcome === 'missing') throw new MillraceError('sink-io', `the file ${draft} disappeared while it was written`);
  if (outcome === 'taken') await files.remove(draft);
  return outcome === 'done';
}
