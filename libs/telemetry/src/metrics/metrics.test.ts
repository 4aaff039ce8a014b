import { expect, test } from 'vitest';
import { MetricsRegistry } from './metrics-registry.ts';
import { renderPrometheus } from './prometheus.ts';

test('a scrape shows counters, gauges read at that moment, and histograms', () => {
  const metrics = new MetricsRegistry();
  const records = metrics.counter('records_total', 'Records "read"\nso far');
  records.add(2);
  records.add(3, { operator: 'a"b\\c\nd' });
  records.add(4, { operator: 'a"b\\c\nd' });
  let depth = 1;
  metrics.gauge('queue_bytes', 'Depth', () => depth);
  const latency = metrics.histogram('flush_ms', 'Flush');
  latency.record(0.3);
  latency.record(3);
  latency.record(1e9);
  depth = 7;
  const text = renderPrometheus([{ families: metrics.collect() }]);
  expect(text).toContain(
    '# HELP records_total Records "read"\\nso far\n# TYPE records_total counter\nrecords_total 2\n',
  );
  expect(text).toContain('records_total{operator="a\\"b\\\\c\\nd"} 7\n');
  expect(text).toContain('# TYPE queue_bytes gauge\nqueue_bytes 7\n');
  expect(text).toContain('flush_ms_bucket{le="0.25"} 0\nflush_ms_bucket{le="0.5"} 1\n');
  expect(text).toContain('flush_ms_bucket{le="5"} 2\n');
  expect(text).toContain('flush_ms_bucket{le="300000"} 2\nflush_ms_bucket{le="+Inf"} 3\n');
  expect(text).toContain('flush_ms_sum 1000000003.3\nflush_ms_count 3\n');
  for (const line of text.trimEnd().split('\n')) {
    expect(line).toMatch(/^(# (HELP|TYPE) .+|[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? \S+)$/);
  }
});

test('the same labels in another order are the same series', () => {
  const metrics = new MetricsRegistry();
  const counter = metrics.counter('x_total', '');
  counter.add(1, { a: 1, b: 2 });
  counter.add(1, { b: 2, a: 1 });
  expect(metrics.collect()[0]?.samples).toEqual([{ labels: { a: 1, b: 2 }, value: 2 }]);
});

test('threads are scraped together, told apart by a label, each metric described once', () => {
  const sources = [0, 1].map((slot) => {
    const metrics = new MetricsRegistry();
    metrics.counter('records_total', 'Records').add(slot + 10);
    return { families: structuredClone(metrics.collect()), labels: { slot } };
  });
  expect(renderPrometheus(sources)).toBe(
    '# HELP records_total Records\n# TYPE records_total counter\nrecords_total{slot="0"} 10\nrecords_total{slot="1"} 11\n',
  );
});

test('a gauge that stopped is gone; two readers of one name add up', () => {
  const metrics = new MetricsRegistry();
  const stop = metrics.gauge('held_bytes', '', () => 5, { job: 'j' });
  metrics.gauge('held_bytes', '', () => 2, { job: 'j' });
  expect(metrics.collect()[0]?.samples).toEqual([{ labels: { job: 'j' }, value: 7 }]);
  stop();
  expect(metrics.collect()[0]?.samples).toEqual([{ labels: { job: 'j' }, value: 2 }]);
});

test('a label with endless values costs no memory: the rest goes to one series', () => {
  const metrics = new MetricsRegistry();
  const counter = metrics.counter('x_total', '');
  for (let key = 0; key < 5000; key++) counter.add(1, { key });
  const samples = metrics.collect()[0]?.samples ?? [];
  expect(samples.length).toBeLessThanOrEqual(1001);
  expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(5000);
  expect(samples.at(-1)?.labels).toEqual({ overflow: 'true' });
});

test('one name for two kinds of metric is refused', () => {
  const metrics = new MetricsRegistry();
  metrics.counter('x_total', '');
  expect(() => metrics.histogram('x_total', '')).toThrow(/is a counter/);
  expect(() => metrics.counter('Bad-Name', '')).toThrow(/snake_case/);
});
