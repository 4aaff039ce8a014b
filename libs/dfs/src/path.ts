import { MillraceError } from '@millrace/kernel';

/** Limit of the whole path in UTF-8 bytes: that of S3 keys. */
const pathBytesMax = 1024;
/** Limit of one name in UTF-8 bytes: below the 255 of POSIX file systems, so that drivers may add a suffix. */
const nameBytesMax = 240;

/** Refuses with `dfs-bad-path` what some store could not keep or would read as another path. */
export function checkPath(path: string): void {
  if (path === '') throw badPath(path, 'it is empty');
  checkNames(path, path.split('/'));
}

/** As {@link checkPath} for the prefix of a listing, which may be empty and may end inside a name or with `/`. */
export function checkPrefix(prefix: string): void {
  if (prefix === '') return;
  const names = prefix.split('/');
  // The last name may be cut off anywhere, so that `a/.` is the beginning of `a/.hidden`.
  const complete = names.slice(0, -1);
  if (complete.length > 0) checkNames(prefix, complete);
  checkText(prefix, prefix);
}

function checkNames(path: string, names: readonly string[]): void {
  checkText(path, path);
  for (const name of names) {
    if (name === '') throw badPath(path, 'it has an empty part');
    if (name === '.' || name === '..') throw badPath(path, `it has the part "${name}"`);
    if (Buffer.byteLength(name) > nameBytesMax) throw badPath(path, `a part is longer than ${nameBytesMax} bytes`);
  }
}

function checkText(path: string, text: string): void {
  if (!text.isWellFormed()) throw badPath(path, 'it has a lone surrogate');
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) < 0x20) throw badPath(path, 'it has a control character');
  }
  if (Buffer.byteLength(text) > pathBytesMax) throw badPath(path, `it is longer than ${pathBytesMax} bytes`);
}

function badPath(path: string, why: string): MillraceError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new MillraceError('dfs-bad-path', `path ${JSON.stringify(shown)} is not allowed: ${why}`, {
    details: { path: shown },
  });
}
