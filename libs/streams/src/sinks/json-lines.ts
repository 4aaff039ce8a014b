import { resolve } from 'node:path';
import type { Sink } from '../api/sink.ts';
import { FileSinkOperator } from './file-sink-operator.ts';
import { LocalFiles } from './local-files.ts';
import type { OutputFiles } from './output-files.ts';
import { jsonLinesParts } from './part-format.ts';

export interface JsonLinesSinkOptions {
  /** Local directory for the part files; made if missing. */
  readonly directory: string;
  /**
   * Removes this sink's files of an earlier run at an empty start, instead of refusing to start. Never files of this run,
   * nor those of another job or operator.
   */
  readonly overwrite?: boolean | undefined;
  /** Where the files really go; default the local directory. */
  readonly files?: OutputFiles;
}

/**
 * Files of one JSON value per line, exactly once: a file becomes visible as `part-<subtask>-<checkpoint>-g<generation>.jsonl`
 * when the checkpoint that contains it is registered, whole, and never changes again. Readers may move or delete it. The
 * directory is this sink's alone: a hidden marker names its owner, and others are refused with `sink-directory-used`.
 */
export function jsonLines<T = unknown>(options: JsonLinesSinkOptions): Sink<T> {
  const directory = resolve(options.directory);
  return {
    kind: 'json-lines',
    stateful: true,
    exclusive: `the directory ${directory}`,
    create: () =>
      new FileSinkOperator({
        files: options.files ?? new LocalFiles(directory),
        directory,
        overwrite: options.overwrite ?? false,
        format: jsonLinesParts,
      }),
  };
}
