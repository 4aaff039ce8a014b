import { zstdDecompressSync } from 'node:zlib';
import { MillraceError } from '@millrace/kernel';
import { type Codec, msgpack } from '@millrace/state';
import { type AsyncBuffer, asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { Source, Split } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';
import { inputError, statFiles } from './files.ts';
import { type ColumnType, type ColumnTypes, normaliseColumn, type RowOf } from './parquet-columns.ts';
import { SequentialReader, type SplitRecords } from './sequential-reader.ts';

export interface ParquetOptions<C extends ColumnTypes> {
  readonly files: readonly string[];
  /** The columns to read, and what they hold; others are not touched. */
  readonly columns: C;
  /** Reads only the first rows, over all files in their order. */
  readonly rows?: number | undefined;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<RowOf<C>>;
}

interface RowGroup {
  readonly file: string;
  /** Rows of the file before this group. */
  readonly firstRow: number;
  /** Rows of the group that are read. */
  readonly rows: number;
  /** Rows of the whole file, to notice another file under the same name. */
  readonly fileRows: number;
}

/** The machine's zstd is several times faster than the one in JavaScript. */
const decompressors = { ...compressors, ZSTD: (input: Uint8Array): Uint8Array => zstdDecompressSync(input) };

/** Parquet files. A split is a row group, its position a row in it; the next group is decoded while one is emitted. */
export function parquetFiles<const C extends ColumnTypes>(options: ParquetOptions<C>): Source<RowOf<C>> {
  const { columns, files } = options;
  const rowsMax = options.rows ?? Number.MAX_SAFE_INTEGER;
  return {
    kind: 'parquet',
    codec: options.codec ?? msgpack<RowOf<C>>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: () => rowGroups(files, rowsMax),
    open: (positions) =>
      Promise.resolve(new SequentialReader(positions, (split, position) => openGroup(split, position, columns))),
  };
}

async function rowGroups(files: readonly string[], rowsMax: number): Promise<readonly Split[]> {
  await statFiles(files);
  const splits: Split[] = [];
  let left = rowsMax;
  for (const file of files) {
    const { metadata } = await openFile(file);
    let firstRow = 0;
    for (const [index, group] of metadata.row_groups.entries()) {
      const rows = Math.min(left, Number(group.num_rows));
      if (rows === 0) continue;
      const data: RowGroup = { file, firstRow, rows, fileRows: Number(metadata.num_rows) };
      splits.push({ id: `${file}#${index}`, order: splits.length, data });
      firstRow += Number(group.num_rows);
      left -= rows;
    }
  }
  return splits;
}

async function openFile(file: string): Promise<{ buffer: AsyncBuffer; metadata: FileMetaData }> {
  try {
    const buffer = await asyncBufferFromFile(file);
    return { buffer, metadata: await parquetMetadataAsync(buffer) };
  } catch (cause) {
    throw inputError(file, 'cannot be read as Parquet', cause);
  }
}

async function openGroup<C extends ColumnTypes>(
  split: Split,
  position: number,
  columns: C,
): Promise<SplitRecords<RowOf<C>>> {
  const group = split.data as RowGroup;
  const { buffer, metadata } = await openFile(group.file);
  if (Number(metadata.num_rows) !== group.fileRows) {
    throw new MillraceError(
      'source-position',
      `${group.file} has ${metadata.num_rows} rows and had ${group.fileRows} when the job started`,
    );
  }
  const names = Object.keys(columns);
  const data: unknown[][] = [];
  for (const name of names) {
    // One column at a time: between two the event loop has its turn.
    const values = await readColumn(buffer, metadata, group, name);
    data.push(normaliseColumn(values, columns[name] as ColumnType, `${group.file}, column ${name}`));
  }
  return new GroupRecords(names, data, group.rows, position);
}

async function readColumn(
  file: AsyncBuffer,
  metadata: FileMetaData,
  group: RowGroup,
  name: string,
): Promise<unknown[]> {
  const values: unknown[] = Array.from({ length: group.rows });
  const { firstRow, rows } = group;
  try {
    await parquetRead({
      file,
      metadata,
      compressors: decompressors,
      columns: [name],
      rowStart: firstRow,
      rowEnd: firstRow + rows,
      onChunk: ({ columnData, rowStart }) => {
        const shift = rowStart - firstRow;
        const end = Math.min(columnData.length, rows - shift);
        for (let i = Math.max(0, -shift); i < end; i++) values[i + shift] = columnData[i];
      },
    });
  } catch (cause) {
    throw inputError(group.file, `cannot be read: column ${name}`, cause);
  }
  return values;
}

class GroupRecords<C extends ColumnTypes> implements SplitRecords<RowOf<C>> {
  position: number;
  readonly #names: readonly string[];
  #columns: readonly unknown[][];
  readonly #rows: number;

  constructor(names: readonly string[], columns: readonly unknown[][], rows: number, position: number) {
    this.#names = names;
    this.#columns = columns;
    this.#rows = rows;
    this.position = position;
  }

  read(recordsMax: number, emit: (record: RowOf<C>) => void): Poll {
    const end = Math.min(this.#rows, this.position + recordsMax);
    const names = this.#names;
    const columns = this.#columns;
    while (this.position < end) {
      const row: Record<string, unknown> = {};
      for (let c = 0; c < names.length; c++) row[names[c] as string] = (columns[c] as unknown[])[this.position];
      this.position++;
      emit(row as RowOf<C>);
    }
    return this.position < this.#rows ? 'more' : 'end';
  }

  close(): Promise<void> {
    this.#columns = [];
    return Promise.resolve();
  }
}
