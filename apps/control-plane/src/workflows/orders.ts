import type { StopMode } from '@millrace/proto/control';
import {
  type OrderFields,
  orderFields,
  refused,
  savepointName,
  stopMode,
  textField,
  wholeNumber,
} from './order-input.ts';

/** The orders that a job takes by update, as they come and as they are meant. Pure: validators call this, too. */

export interface Origin {
  readonly operation: string | undefined;
  readonly reply: string | undefined;
}

const originFields = ['operation', 'reply'] as const;
const rescaleTimeoutMs = 60_000;

export interface RescaleOrderParsed {
  readonly parallelism: number;
  readonly timeoutMs: number;
  readonly origin: Origin;
}

export function rescaleOrder(input: unknown, maxParallelism: number): RescaleOrderParsed {
  const fields = orderFields(input, ['parallelism', 'timeoutMs', ...originFields]);
  const parallelism = fields.parallelism;
  if (typeof parallelism === 'number' && parallelism > maxParallelism) {
    const words = `${parallelism} is more than the job's max parallelism, ${maxParallelism}, which is fixed for the life of its state`;
    throw refused(`Field "parallelism": ${words}.`, 'parallelism');
  }
  const wanted = wholeNumber(fields, 'parallelism', 1, maxParallelism);
  if (wanted === undefined)
    throw refused('Field "parallelism" is missing: say how many subtasks to run.', 'parallelism');
  const timeoutMs = wholeNumber(fields, 'timeoutMs', 1_000, 86_400_000) ?? rescaleTimeoutMs;
  return { parallelism: wanted, timeoutMs, origin: originOf(fields) };
}

export interface StopOrderParsed {
  readonly mode: StopMode;
  readonly savepoint: string | undefined;
  readonly origin: Origin;
}

export function stopOrder(input: unknown): StopOrderParsed {
  const fields = orderFields(input, ['mode', 'savepoint', ...originFields]);
  const mode = stopMode(fields);
  const savepoint = savepointName(fields, 'savepoint');
  if (mode === 'drain' && savepoint !== undefined) {
    throw refused('Field "savepoint": a drained job is finished; use it with "mode": "suspend".', 'savepoint');
  }
  return { mode, savepoint, origin: originOf(fields) };
}

export function savepointOrder(input: unknown): { readonly name: string | undefined; readonly origin: Origin } {
  const fields = orderFields(input, ['name', ...originFields]);
  return { name: savepointName(fields, 'name'), origin: originOf(fields) };
}

export function checkpointOrder(input: unknown): { readonly origin: Origin } {
  return { origin: originOf(orderFields(input, originFields)) };
}

function originOf(fields: OrderFields): Origin {
  return { operation: textField(fields, 'operation'), reply: textField(fields, 'reply') };
}
