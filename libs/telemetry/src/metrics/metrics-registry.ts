import { assert } from '@millrace/kernel';
import type { Attributes, Counter, Histogram, Metrics } from '../ports.ts';
import { bucketsFor } from './buckets.ts';
import { labelsKey, Series } from './series.ts';

/** A metric's values at one instant: plain data, so that a worker thread can post it to the thread that is scraped. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly MetricSample[];
}

export interface MetricSample {
  readonly labels: Attributes;
  /** Of a counter or gauge; of a histogram the sum of what was recorded. */
  readonly value: number;
  /** Of a histogram: counts per bucket, the last one beyond the highest bound. */
  readonly buckets?: readonly number[];
}

interface HistogramCell {
  sum: number;
  readonly counts: number[];
}

type Metric =
  | { readonly kind: 'counter'; readonly help: string; readonly series: Series<{ value: number }> }
  | { readonly kind: 'histogram'; readonly help: string; readonly series: Series<HistogramCell> }
  | { readonly kind: 'gauge'; readonly help: string; readonly readers: Set<GaugeReader> };

interface GaugeReader {
  readonly labels: Attributes;
  readonly read: () => number;
}

const nameShape = /^[a-z][a-z0-9_]*$/;

/** The metrics of one process or worker thread: adding is a plain field; reading happens at `collect`. */
export class MetricsRegistry implements Metrics {
  readonly #metrics = new Map<string, Metric>();

  counter(name: string, help: string): Counter {
    const metric = this.#get(name, 'counter', () => ({
      kind: 'counter',
      help,
      series: new Series(() => ({ value: 0 })),
    }));
    const { series } = metric;
    return {
      add(amount, labels) {
        series.cell(labels).value += amount;
      },
    };
  }

  histogram(name: string, help: string): Histogram {
    const bounds = bucketsFor(name);
    const make = (): HistogramCell => ({ sum: 0, counts: Array.from({ length: bounds.length + 1 }, () => 0) });
    const metric = this.#get(name, 'histogram', () => ({ kind: 'histogram', help, series: new Series(make) }));
    const { series } = metric;
    return {
      record(value, labels) {
        const cell = series.cell(labels);
        let bucket = 0;
        while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
        cell.counts[bucket] = (cell.counts[bucket] as number) + 1;
        cell.sum += value;
      },
    };
  }

  /** Several readers of the same name and labels (two attempts of a job) are summed. */
  gauge(name: string, help: string, read: () => number, labels: Attributes = {}): () => void {
    const { readers } = this.#get(name, 'gauge', () => ({ kind: 'gauge', help, readers: new Set() }));
    const reader = { labels, read };
    readers.add(reader);
    return () => readers.delete(reader);
  }

  collect(): MetricFamily[] {
    return [...this.#metrics].map(([name, metric]) => ({
      name,
      help: metric.help,
      kind: metric.kind,
      samples: samplesOf(metric),
    }));
  }

  #get<K extends Metric['kind']>(
    name: string,
    kind: K,
    make: () => Extract<Metric, { kind: K }>,
  ): Extract<Metric, { kind: K }> {
    const known = this.#metrics.get(name);
    if (known !== undefined) {
      assert(known.kind === kind, `metric ${name} is a ${known.kind}`);
      return known as Extract<Metric, { kind: K }>;
    }
    assert(nameShape.test(name), `metric name ${name} is not snake_case`);
    const made = make();
    this.#metrics.set(name, made);
    return made;
  }
}

function samplesOf(metric: Metric): MetricSample[] {
  switch (metric.kind) {
    case 'counter':
      return Array.from(metric.series, ({ labels, cell }) => ({ labels, value: cell.value }));
    case 'histogram':
      return Array.from(metric.series, ({ labels, cell }) => ({ labels, value: cell.sum, buckets: [...cell.counts] }));
    case 'gauge':
      return sumByLabels(metric.readers);
  }
}

function sumByLabels(readers: Iterable<GaugeReader>): MetricSample[] {
  const sums = new Map<string, MetricSample>();
  for (const { labels, read } of readers) {
    const key = labelsKey(labels);
    sums.set(key, { labels, value: (sums.get(key)?.value ?? 0) + read() });
  }
  return [...sums.values()];
}
