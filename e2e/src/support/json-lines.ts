import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every row of the published files of an output directory, as text, in order. Hidden files are not published. */
export function readPublishedRows(directory: string): string[] {
  const rows: string[] = [];
  for (const file of readdirSync(directory).sort()) {
    if (file.startsWith('.')) continue;
    const text = readFileSync(join(directory, file), 'utf8');
    for (const line of text.split('\n')) if (line !== '') rows.push(line);
  }
  return rows.sort();
}

/** The first few differences of two sorted lists, for a message that can be read; empty when equal. */
export function differences(actual: readonly string[], expected: readonly string[]): string[] {
  const found: string[] = [];
  const counts = new Map<string, number>();
  for (const row of expected) counts.set(row, (counts.get(row) ?? 0) + 1);
  for (const row of actual) counts.set(row, (counts.get(row) ?? 0) - 1);
  for (const [row, count] of counts) {
    if (count > 0) found.push(`missing ${count} ×: ${row}`);
    if (count < 0) found.push(`too many ${-count} ×: ${row}`);
    if (found.length >= 10) break;
  }
  return found;
}
