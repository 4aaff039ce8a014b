import { stat } from 'node:fs/promises';
import { MillraceError } from '@millrace/kernel';

/** Checks that every input is a file, and returns the sizes in bytes. */
export async function statFiles(files: readonly string[]): Promise<readonly number[]> {
  if (files.length === 0) throw new MillraceError('bad-argument', 'a file source needs at least one file');
  if (new Set(files).size < files.length) throw new MillraceError('bad-argument', 'a file is named twice');
  return Promise.all(
    files.map(async (file) => {
      try {
        const found = await stat(file);
        if (found.isFile()) return found.size;
      } catch (cause) {
        throw inputError(file, 'cannot be read', cause);
      }
      throw inputError(file, 'is not a file');
    }),
  );
}

export function inputError(file: string, message: string, cause?: unknown): MillraceError {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return new MillraceError('source-input', `${file} ${message}${reason}`, { details: { file }, cause });
}
