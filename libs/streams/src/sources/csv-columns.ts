import { MillraceError } from '@millrace/kernel';
import type { ColumnType, ColumnTypes, RowOf } from './parquet-columns.ts';

/** Turns a record's fields into a row of the declared columns. */
export type RowReader<C extends ColumnTypes> = (fields: ReadonlyArray<string | undefined>) => RowOf<C>;

/** `header`: the names in the order of the fields. Every declared column must be among them; others are not looked at. */
export function rowReader<C extends ColumnTypes>(columns: C, header: readonly string[]): RowReader<C> {
  const places = Object.entries(columns).map(([name, type]) => {
    const at = header.indexOf(name);
    if (at < 0) throw bad(`there is no column ${name}; there are ${header.join(', ')}`);
    return { name, at, nullable: type.endsWith('?'), convert: converters[baseOf(type)] };
  });
  return (fields) => {
    if (fields.length !== header.length) throw bad(`it has ${fields.length} fields, the header ${header.length}`);
    const row: Record<string, unknown> = {};
    for (const { name, at, nullable, convert } of places) {
      const field = fields[at];
      if (field === undefined && nullable) row[name] = null;
      else {
        const value = convert(field ?? '');
        if (value === undefined) throw bad(`column ${name}: ${JSON.stringify(field ?? '')} is not what was declared`);
        row[name] = value;
      }
    }
    return row as RowOf<C>;
  };
}

const numberPattern = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const truth: Readonly<Record<string, boolean>> = { true: true, false: false, '1': true, '0': false };

const converters = {
  int: (text: string): number | undefined => {
    const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    return Number.isSafeInteger(number) ? number : undefined;
  },
  float: (text: string): number | undefined => (numberPattern.test(text) ? Number(text) : undefined),
  string: (text: string): string | undefined => text,
  bool: (text: string): boolean | undefined => truth[text.toLowerCase()],
  /** ISO 8601; without a zone it is UTC. */
  timestamp: (text: string): number | undefined => {
    const match = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:?\d{2})?)?$/.exec(text);
    if (match === null) return undefined;
    const ms = Date.parse(`${match[1]}T${match[2] ?? '00:00'}${match[3] ?? 'Z'}`);
    return Number.isNaN(ms) ? undefined : ms;
  },
};

function baseOf(type: ColumnType): keyof typeof converters {
  return (type.endsWith('?') ? type.slice(0, -1) : type) as keyof typeof converters;
}

function bad(message: string): MillraceError {
  return new MillraceError('source-input', message);
}
