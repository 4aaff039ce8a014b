import { MillraceError } from '@millrace/kernel';

/** Where a record of CSV ends: the index behind its line end; `more` when it does not end in these bytes. */
export type RecordEnd = number | 'more';

const quote = 0x22;
const newline = 0x0a;

/**
 * The end of the record that begins at `from` (RFC 4180: a line end inside of quotes belongs to the field). Works on bytes: none
 * of those that matter occurs within a character of UTF-8.
 */
export function recordEnd(bytes: Uint8Array, from: number): RecordEnd {
  let quoted = false;
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i];
    // A doubled quote toggles twice.
    if (byte === quote) quoted = !quoted;
    else if (byte === newline && !quoted) return i + 1;
  }
  return 'more';
}

/** The fields of one record, without its line end. Undefined: an empty field without quotes, which stands for null. */
export function fieldsOf(text: string, delimiter: string): Array<string | undefined> {
  const fields: Array<string | undefined> = [];
  for (let at = 0; ; ) {
    let field: string | undefined;
    if (text[at] === '"') [field, at] = quotedField(text, at);
    else {
      const end = text.indexOf(delimiter, at);
      const stop = end < 0 ? text.length : end;
      field = stop === at ? undefined : text.slice(at, stop);
      if (field?.includes('"')) throw bad(`a quote inside of the unquoted field ${JSON.stringify(field)}`);
      at = stop;
    }
    fields.push(field);
    if (at >= text.length) return fields;
    if (text[at] !== delimiter) throw bad(`text behind a closing quote at character ${at}`);
    at++;
  }
}

function quotedField(text: string, from: number): [string, number] {
  let field = '';
  for (let at = from + 1; ; ) {
    const end = text.indexOf('"', at);
    if (end < 0) throw bad('a quote is not closed');
    field += text.slice(at, end);
    if (text[end + 1] !== '"') return [field, end + 1];
    field += '"';
    at = end + 2;
  }
}

function bad(message: string): MillraceError {
  return new MillraceError('source-input', message);
}
