import { MillraceError } from '@millrace/kernel';
import { type BasicType, ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer';
import type { ColumnType, ColumnTypes } from '../sources/parquet-columns.ts';
import type { PartEncoder, PartFormat } from './part-format.ts';

/** Parquet files of these columns, compressed with Snappy. Rows are held until a row group is full. */
export function parquetParts(columns: ColumnTypes, rowGroupRows: number): PartFormat {
  const specs = Object.entries(columns).map(([name, type]) => columnOf(name, type));
  return { extension: 'parquet', create: () => new ParquetEncoder(specs, rowGroupRows) };
}

interface ColumnSpec {
  readonly name: string;
  readonly type: BasicType;
  readonly nullable: boolean;
  /** Undefined: the value is not of the column's type. */
  readonly convert: (value: unknown) => unknown;
}

const kinds = {
  int: {
    type: 'INT64',
    convert: (value: unknown) => (Number.isSafeInteger(value) ? BigInt(value as number) : undefined),
  },
  float: { type: 'DOUBLE', convert: (value: unknown) => (typeof value === 'number' ? value : undefined) },
  string: { type: 'STRING', convert: (value: unknown) => (typeof value === 'string' ? value : undefined) },
  bool: { type: 'BOOLEAN', convert: (value: unknown) => (typeof value === 'boolean' ? value : undefined) },
  timestamp: {
    type: 'TIMESTAMP',
    convert: (value: unknown) => (Number.isSafeInteger(value) ? new Date(value as number) : undefined),
  },
} as const;

function columnOf(name: string, type: ColumnType): ColumnSpec {
  const nullable = type.endsWith('?');
  return { name, nullable, ...kinds[(nullable ? type.slice(0, -1) : type) as keyof typeof kinds] };
}

class ParquetEncoder implements PartEncoder {
  readonly #specs: readonly ColumnSpec[];
  readonly #rowGroupRows: number;
  readonly #bytes = new ByteWriter();
  readonly #writer: ParquetWriter;
  #columns: unknown[][];
  #rows = 0;

  constructor(specs: readonly ColumnSpec[], rowGroupRows: number) {
    this.#specs = specs;
    this.#rowGroupRows = rowGroupRows;
    this.#columns = specs.map(() => []);
    const columnData = specs.map(({ name, type, nullable }) => ({ name, type, nullable, data: [] }));
    this.#writer = new ParquetWriter({ writer: this.#bytes, schema: schemaFromColumnData({ columnData }) });
  }

  get bytes(): number {
    return this.#bytes.index;
  }

  add(record: unknown): void {
    for (const [at, { name, nullable, convert }] of this.#specs.entries()) {
      const value = (record as Readonly<Record<string, unknown>>)[name];
      const missing = value === null || value === undefined;
      const converted = missing ? null : convert(value);
      if (converted === undefined || (missing && !nullable)) {
        throw new MillraceError('bad-argument', `column ${name}: ${JSON.stringify(value)} is not what was declared`);
      }
      (this.#columns[at] as unknown[]).push(converted);
    }
    this.#rows++;
    if (this.#rows >= this.#rowGroupRows) this.#group();
  }

  take(): Uint8Array {
    const bytes = this.#bytes.getBytes().slice();
    // The writer's offset goes on: it is what the footer refers to.
    this.#bytes.index = 0;
    return bytes;
  }

  finish(): Uint8Array {
    if (this.#rows > 0) this.#group();
    void this.#writer.finish(); // synchronous: nothing is flushed by the writer itself
    return this.take();
  }

  #group(): void {
    const columnData = this.#specs.map(({ name, type, nullable }, at) => ({
      name,
      type,
      nullable,
      data: this.#columns[at] as unknown[],
    }));
    void this.#writer.write({ columnData, rowGroupSize: this.#rows });
    this.#columns = this.#specs.map(() => []);
    this.#rows = 0;
  }
}
