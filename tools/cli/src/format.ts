const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Bytes for people: `1.5 MB` in decimal units. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Whole numbers for people: `1,234,567`. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

/** A watermark for people: minutes are enough. */
export function formatTime(epochMs: number | null): string {
  if (epochMs === null) return '–';
  if (epochMs >= 8.64e15) return 'end';
  return new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ');
}

/** Columns padded to their widest cell; the first row is the head. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
