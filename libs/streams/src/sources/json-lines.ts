import { type Codec, msgpack } from '@millrace/state';
import type { Source } from '../api/source.ts';
import { type FileFormat, openFileRecords } from './file-records.ts';
import { statFiles } from './files.ts';
import { SequentialReader } from './sequential-reader.ts';

export interface JsonLinesSourceOptions<T> {
  readonly files: readonly string[];
  /** Checks and shapes a parsed line; without it lines are taken as they are. */
  readonly parse?: (json: unknown) => T;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<T>;
}

const newline = 0x0a;

/** Files of one JSON value per line. A split is a file, its position a byte offset; empty lines are skipped. */
export function jsonLinesFiles<T = unknown>(options: JsonLinesSourceOptions<T>): Source<T> {
  const { files } = options;
  const format = jsonLinesFormat(options.parse);
  return {
    kind: 'json-lines',
    codec: options.codec ?? msgpack<T>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: async () => {
      const sizes = await statFiles(files);
      return files.map((file, order) => ({ id: file, order, data: { endBytes: sizes[order] as number } }));
    },
    open: (positions) =>
      Promise.resolve(new SequentialReader(positions, (split, position) => openFileRecords(split, position, format))),
  };
}

export function jsonLinesFormat<T>(parse: (json: unknown) => T = (json) => json as T): FileFormat<T> {
  return {
    end: (bytes, from) => {
      const end = bytes.indexOf(newline, from);
      return end < 0 ? 'more' : end + 1;
    },
    take: (text) => parse(JSON.parse(text)),
  };
}
