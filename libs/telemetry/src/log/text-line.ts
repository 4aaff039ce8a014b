const levels: Readonly<Record<number, string>> = { 10: 'TRACE', 20: 'DEBUG', 30: 'INFO ', 40: 'WARN ', 50: 'ERROR' };
const hidden = new Set(['level', 'time', 'msg', 'service', 'pid']);

/** A JSON log line as one line for a person: time of day (UTC), level, message, fields. */
export function textLine(json: string): string {
  const entry = JSON.parse(json) as Readonly<Record<string, unknown>> & { level: number; time: number; msg?: string };
  const time = new Date(entry.time).toISOString().slice(11, 23);
  const fields = Object.entries(entry)
    .filter(([key]) => !hidden.has(key))
    .map(([key, value]) => ` ${key}=${valueText(value)}`);
  return `${time} ${levels[entry.level] ?? entry.level} ${entry.msg ?? ''}${fields.join('')}\n`;
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && /^[\w./:@+-]+$/.test(value)) return value;
  if (typeof value === 'object' && value !== null && 'stack' in value) {
    const { stack, ...rest } = value;
    return `${JSON.stringify(rest)}\n    ${String(stack)}\n`.trimEnd();
  }
  return JSON.stringify(value);
}
