import type { Attributes } from '../ports.ts';
import { bucketsFor } from './buckets.ts';
import type { MetricFamily, MetricSample } from './metrics-registry.ts';

/** What one registry collected, and labels that say where (`{ slot: 3 }`). */
export interface MetricSource {
  readonly families: readonly MetricFamily[];
  readonly labels?: Attributes;
}

/** Content type of what `renderPrometheus` gives. */
export const prometheusContentType = 'text/plain; version=0.0.4; charset=utf-8';

/** The text format of Prometheus (version 0.0.4) for several registries together, for example of all threads. */
export function renderPrometheus(sources: readonly MetricSource[]): string {
  const families = new Map<string, { readonly family: MetricFamily; readonly lines: string[] }>();
  for (const { families: collected, labels = {} } of sources) {
    for (const family of collected) {
      let entry = families.get(family.name);
      if (entry === undefined) families.set(family.name, (entry = { family, lines: [] }));
      for (const sample of family.samples) entry.lines.push(...sampleLines(family, sample, labels));
    }
  }
  const out: string[] = [];
  for (const { family, lines } of families.values()) {
    if (lines.length === 0) continue;
    const help = family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
    out.push(`# HELP ${family.name} ${help}`, `# TYPE ${family.name} ${family.kind}`, ...lines);
  }
  return out.length === 0 ? '' : `${out.join('\n')}\n`;
}

function sampleLines({ name }: MetricFamily, sample: MetricSample, extra: Attributes): string[] {
  const labels = { ...extra, ...sample.labels };
  if (sample.buckets === undefined) return [`${name}${labelText(labels)} ${numberText(sample.value)}`];
  const bounds = bucketsFor(name);
  const lines: string[] = [];
  let count = 0;
  for (const [i, inBucket] of sample.buckets.entries()) {
    count += inBucket;
    const le = i < bounds.length ? String(bounds[i]) : '+Inf';
    lines.push(`${name}_bucket${labelText({ ...labels, le })} ${count}`);
  }
  lines.push(`${name}_sum${labelText(labels)} ${numberText(sample.value)}`);
  lines.push(`${name}_count${labelText(labels)} ${count}`);
  return lines;
}

function labelText(labels: Attributes): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const text = String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
    return `${name.replaceAll(/[^a-zA-Z0-9_]/g, '_')}="${text}"`;
  });
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value); // NaN is NaN there, too
}
