import { resolve } from 'node:path';
import { MillraceError } from '@millrace/kernel';
import { type Codec, msgpack } from '@millrace/state';
import { type Duration, durationMs } from '../api/duration.ts';
import type { Source } from '../api/source.ts';
import { DirectoryReader } from './directory-reader.ts';
import { bucketSplits } from './directory-state.ts';
import { jsonLinesFormat } from './json-lines.ts';

export interface WatchDirectoryOptions<T> {
  /** A directory that every runner sees. Files have to appear in it whole: written elsewhere or hidden, then renamed. */
  readonly directory: string;
  /** Which names are read. Default: all but those that begin with `.` or `_`. */
  readonly match?: RegExp | undefined;
  /** Checks and shapes a parsed line; without it lines are taken as they are. */
  readonly parse?: (json: unknown) => T;
  /** How often to look for new files. Default 1 s. */
  readonly every?: Duration | undefined;
  /** Files in the directory, at most: those that have been read are remembered as long as they are there. Default 10,000. */
  readonly filesMax?: number | undefined;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<T>;
}

/** Fixed for the life of the job's state; more subtasks than these have nothing to do. */
const buckets = 128;
const visible = /^[^._]/;

/**
 * Files of one JSON value per line as they appear in a directory; it never ends. Each file is read once, up to the length that it
 * had when it was found, in the order of names among those that a subtask finds together. What was read is in the checkpoint.
 */
export function watchDirectory<T = unknown>(options: WatchDirectoryOptions<T>): Source<T> {
  const directory = resolve(options.directory);
  const everyMs = durationMs(options.every ?? 1000, 'every');
  const filesMax = options.filesMax ?? 10_000;
  if (everyMs < 1) throw new MillraceError('bad-argument', `watchDirectory: every must be positive, not ${everyMs}`);
  if (!Number.isSafeInteger(filesMax) || filesMax < 1) {
    throw new MillraceError(
      'bad-argument',
      `watchDirectory: filesMax must be a positive whole number, not ${filesMax}`,
    );
  }
  const pattern = options.match ?? visible;
  if (pattern.global || pattern.sticky) {
    throw new MillraceError('bad-argument', 'watchDirectory: match must not be global or sticky');
  }
  const format = jsonLinesFormat(options.parse);
  return {
    kind: 'directory',
    codec: options.codec ?? msgpack<T>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: () => Promise.resolve(bucketSplits(buckets)),
    open: (positions, { clock }) =>
      Promise.resolve(
        new DirectoryReader(positions, {
          directory,
          match: (name) => pattern.test(name),
          format,
          everyMs,
          filesMax,
          clock,
        }),
      ),
  };
}
