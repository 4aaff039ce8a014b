import { resolve } from 'node:path';
import { MillraceError } from '@millrace/kernel';
import type { Sink } from '../api/sink.ts';
import type { ColumnTypes, RowOf } from '../sources/parquet-columns.ts';
import { FileSinkOperator } from './file-sink-operator.ts';
import type { JsonLinesSinkOptions } from './json-lines.ts';
import { LocalFiles } from './local-files.ts';
import { parquetParts } from './parquet-parts.ts';

export interface ParquetSinkOptions<C extends ColumnTypes> extends JsonLinesSinkOptions {
  /** The columns of the files, by name in the record, and what they hold; timestamps are epoch milliseconds. */
  readonly columns: C;
  /** Rows of a row group, held in memory until it is full. Default 50,000. */
  readonly rowGroupRows?: number | undefined;
}

/** Parquet files, exactly once, as `jsonLines`: one for each subtask and checkpoint with records, so give rounds some time. */
export function parquetSink<const C extends ColumnTypes>(options: ParquetSinkOptions<C>): Sink<RowOf<C>> {
  const { columns, rowGroupRows = 50_000, overwrite = false } = options;
  if (Object.keys(columns).length === 0) throw new MillraceError('bad-argument', 'parquet: columns must not be empty');
  if (!Number.isSafeInteger(rowGroupRows) || rowGroupRows < 1) {
    throw new MillraceError(
      'bad-argument',
      `parquet: rowGroupRows must be a positive whole number, not ${rowGroupRows}`,
    );
  }
  const directory = resolve(options.directory);
  const format = parquetParts(columns, rowGroupRows);
  return {
    kind: 'parquet',
    stateful: true,
    exclusive: `the directory ${directory}`,
    create: () =>
      new FileSinkOperator({ files: options.files ?? new LocalFiles(directory), directory, overwrite, format }),
  };
}
