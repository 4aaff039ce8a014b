import { type StopMode, stopModes } from '@millrace/proto/control';
import { endWith } from './failures.ts';

/** Fields of an order as it came: by a person through the Web UI, or by an operation's workflow. */
export type OrderFields = Readonly<Record<string, unknown>>;

/** The order as an object; refuses in words what is none. Nothing at all is an order without fields. */
export function orderFields(input: unknown, known: readonly string[]): OrderFields {
  if (input === undefined || input === null) return {};
  if (typeof input !== 'object' || Array.isArray(input)) {
    const kind = Array.isArray(input) ? 'a list' : `a ${typeof input}`;
    throw refused(`The input is ${kind}. It has to be a JSON object.`, '');
  }
  const unknown = Object.keys(input).find((key) => !known.includes(key));
  if (unknown !== undefined) throw refused(`Unknown field "${unknown}". Fields are ${known.join(', ')}.`, unknown);
  return input as OrderFields;
}

export function textField(fields: OrderFields, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length <= 200) return value;
  throw refused(`Field "${name}": give a text of at most 200 characters.`, name);
}

export function wholeNumber(fields: OrderFields, name: string, min: number, max: number): number | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw refused(`Field "${name}": give a whole number from ${min} to ${max}.`, name);
}

/** Savepoints are named in lists and on command lines. */
export function savepointName(fields: OrderFields, name: string): string | undefined {
  const value = textField(fields, name);
  if (value === undefined || /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(value)) return value;
  const words = 'use 1 to 100 letters, digits, ., - and _, beginning with a letter or digit';
  throw refused(`Field "${name}": ${words}.`, name);
}

export function stopMode(fields: OrderFields): StopMode {
  const value = textField(fields, 'mode') ?? 'suspend';
  const mode = stopModes.find((known) => known === value);
  if (mode !== undefined) return mode;
  throw refused(`Field "mode": use ${stopModes.join(' or ')}.`, 'mode');
}

/** A failure that says which field is to be changed. */
export function refused(message: string, field: string, code = 'job-input'): Error {
  return endWith({ code, kind: 'input', message, details: { field } });
}
