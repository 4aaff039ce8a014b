import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';

/** What a disk cache sees of a job's files. */
export type TraceEvent =
  /** A file was made. */
  | { readonly atMs: number; readonly kind: 'written'; readonly file: number; readonly bytes: number }
  /** It was read so many times since the last event of the kind. */
  | {
      readonly atMs: number;
      readonly kind: 'read';
      readonly file: number;
      readonly bytes: number;
      readonly reads: number;
    }
  /** Nobody will read it again. */
  | { readonly atMs: number; readonly kind: 'forgotten'; readonly file: number };

export interface Trace {
  readonly name: string;
  readonly events: readonly TraceEvent[];
}

type Row =
  | readonly ['w', number, number, number]
  | readonly ['r', number, number, number, number]
  | readonly ['f', number, number];

/** Gzipped JSON: one array of rows `[kind, ms, file, …]`. */
export function writeTrace(path: string, trace: Trace): void {
  const rows = trace.events.map((event): Row => {
    if (event.kind === 'written') return ['w', event.atMs, event.file, event.bytes];
    if (event.kind === 'read') return ['r', event.atMs, event.file, event.bytes, event.reads];
    return ['f', event.atMs, event.file];
  });
  writeFileSync(path, gzipSync(JSON.stringify(rows), { level: 9 }));
}

export function readTrace(name: string, path: string): Trace {
  const rows = JSON.parse(gunzipSync(readFileSync(path)).toString()) as readonly Row[];
  const events = rows.map((row): TraceEvent => {
    const [, atMs, file] = row;
    if (row[0] === 'w') return { kind: 'written', atMs, file, bytes: row[3] };
    if (row[0] === 'r') return { kind: 'read', atMs, file, bytes: row[3], reads: row[4] };
    return { kind: 'forgotten', atMs, file };
  });
  return { name, events };
}
