import { MillraceError } from '@millrace/kernel';

/** What a column holds; a trailing `?` allows nulls. Integers are refused beyond 2^53; timestamps become epoch ms. */
export type ColumnType =
  | 'int'
  | 'float'
  | 'string'
  | 'bool'
  | 'timestamp'
  | `${'int' | 'float' | 'string' | 'bool' | 'timestamp'}?`;

type BaseType<C> = C extends 'string' ? string : C extends 'bool' ? boolean : number;
type ColumnValue<C extends ColumnType> = C extends `${infer B}?` ? BaseType<B> | null : BaseType<C>;

export type ColumnTypes = Readonly<Record<string, ColumnType>>;
export type RowOf<C extends ColumnTypes> = { readonly [Name in keyof C]: ColumnValue<C[Name]> };

/** Turns a decoded column into what {@link ColumnType} says, in place; `where` names the column in errors. */
export function normaliseColumn(values: unknown[], type: ColumnType, where: string): unknown[] {
  const nullable = type.endsWith('?');
  const base = nullable ? type.slice(0, -1) : type;
  const convert = converters[base as keyof typeof converters];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || value === undefined) {
      if (!nullable) throw bad(where, i, `is null; declare the column as '${base}?'`);
      values[i] = null;
      continue;
    }
    const converted = convert(value);
    if (converted === undefined) throw bad(where, i, `is not of type ${base}`);
    values[i] = converted;
  }
  return values;
}

const converters = {
  int: (value: unknown): number | undefined => {
    const number = typeof value === 'bigint' ? Number(value) : value;
    return Number.isSafeInteger(number) ? (number as number) : undefined;
  },
  float: (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined),
  string: (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined),
  bool: (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined),
  timestamp: (value: unknown): number | undefined => (value instanceof Date ? value.getTime() : undefined),
};

function bad(where: string, row: number, message: string): MillraceError {
  return new MillraceError('source-input', `${where}: the value in row ${row} ${message}`);
}
