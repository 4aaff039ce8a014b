import { MillraceError } from '@millrace/kernel';
import type { SnapshotHandle, TableSpec } from '@millrace/state';
import { z } from 'zod';

const name = z.string().min(1).max(500);
const keyGroups = z.object({ start: z.number().int().min(0), end: z.number().int().min(0) });

const specSchema = z.object({
  job: name,
  operator: name,
  subtask: z.number().int().min(0),
  keyGroups,
  maxParallelism: z.number().int().min(1),
  generation: z.number().int().min(0),
});

const handleSchema = z.object({
  store: name,
  operator: name,
  keyGroups,
  data: z.record(z.string(), z.unknown()),
  holders: z.array(z.string()),
  bytesPut: z.number(),
  bytesLinked: z.number(),
});

export interface OpenRequest {
  readonly spec: TableSpec;
  readonly restore: readonly SnapshotHandle[];
}

/** What a client asks to open, checked. Throws `bad-argument`. */
export function parseOpen(message: { readonly spec: string; readonly restore: readonly string[] }): OpenRequest {
  return {
    spec: parse(specSchema, message.spec, 'table'),
    restore: message.restore.map((text) => parse(handleSchema, text, 'snapshot handle')),
  };
}

function parse<S extends z.ZodType>(schema: S, text: string, what: string): z.output<S> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new MillraceError('bad-argument', `the ${what} is no JSON`, { cause: error });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new MillraceError('bad-argument', `the ${what} has a wrong ${issue?.path.join('.')}: ${issue?.message}`);
}
