import { open } from 'node:fs/promises';
import { MillraceError } from '@millrace/kernel';
import { type Codec, msgpack } from '@millrace/state';
import type { Source, Split } from '../api/source.ts';
import { rowReader } from './csv-columns.ts';
import { fieldsOf, recordEnd } from './csv-records.ts';
import { checkLength, openFileRecords } from './file-records.ts';
import { inputError, statFiles } from './files.ts';
import type { ColumnTypes, RowOf } from './parquet-columns.ts';
import { SequentialReader, type SplitRecords } from './sequential-reader.ts';

export interface CsvOptions<C extends ColumnTypes> {
  readonly files: readonly string[];
  /**
   * The columns to read, and what they hold. An empty field without quotes is null where the type ends in `?`; timestamps are
   * ISO 8601, in UTC where they name no zone.
   */
  readonly columns: C;
  /** Names of the fields, for files that begin with a record; absent: the first record of each file has them. */
  readonly header?: readonly string[] | undefined;
  /** One character. Default `,`. */
  readonly delimiter?: string | undefined;
  readonly recordsPerSecond?: number | undefined;
  readonly codec?: Codec<RowOf<C>>;
}

const headerBytesMax = 1024 * 1024;
const byteOrderMark = '\uFEFF';

/** CSV files (RFC 4180, UTF-8; line ends may be \n). A split is a file, its position a byte offset. */
export function csvFiles<const C extends ColumnTypes>(options: CsvOptions<C>): Source<RowOf<C>> {
  const { files, delimiter = ',' } = options;
  if (delimiter.length !== 1 || '"\r\n'.includes(delimiter)) {
    throw new MillraceError(
      'bad-argument',
      `csv: the delimiter must be one character, not ${JSON.stringify(delimiter)}`,
    );
  }
  return {
    kind: 'csv',
    codec: options.codec ?? msgpack<RowOf<C>>(),
    recordsPerSecond: options.recordsPerSecond,
    splits: async () => {
      const sizes = await statFiles(files);
      return files.map((file, order) => ({ id: file, order, data: { endBytes: sizes[order] as number } }));
    },
    open: (positions) =>
      Promise.resolve(
        new SequentialReader(positions, (split, position) => openCsv(split, position, { ...options, delimiter })),
      ),
  };
}

async function openCsv<C extends ColumnTypes>(
  split: Split,
  position: number,
  options: CsvOptions<C> & { readonly delimiter: string },
): Promise<SplitRecords<RowOf<C>>> {
  const { columns, delimiter } = options;
  await checkLength(split);
  const header =
    options.header === undefined ? await readHeader(split.id, delimiter) : { names: options.header, end: 0 };
  try {
    const read = rowReader(columns, header.names);
    return await openFileRecords(split, Math.max(position, header.end), {
      end: recordEnd,
      take: (text) => read(fieldsOf(text, delimiter)),
    });
  } catch (cause) {
    throw cause instanceof MillraceError && cause.details.file !== undefined
      ? cause
      : inputError(split.id, 'cannot be read', cause);
  }
}

/** The names in the first record, and the offset behind it. */
async function readHeader(file: string, delimiter: string): Promise<{ names: readonly string[]; end: number }> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(headerBytesMax), 0, headerBytesMax, 0);
    const bytes = buffer.subarray(0, bytesRead);
    const found = recordEnd(bytes, 0);
    if (found === 'more' && bytesRead === headerBytesMax) throw inputError(file, 'has no end of its header');
    const end = found === 'more' ? bytesRead : found;
    const text = bytes.toString('utf8', 0, end).replace(byteOrderMark, '').trim();
    if (text === '') throw inputError(file, 'begins without a header');
    return { names: fieldsOf(text, delimiter).map((name) => name ?? ''), end };
  } finally {
    await handle.close();
  }
}
