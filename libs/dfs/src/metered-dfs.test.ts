import { systemClock } from '@millrace/kernel';
import { noTelemetry, type SpanOptions, type Telemetry } from '@millrace/telemetry';
import { describe, expect, it } from 'vitest';
import { MemoryDfs } from './memory-dfs.ts';
import { MeteredDfs } from './metered-dfs.ts';
import { FaultyDfs } from './testing/faulty-dfs.ts';

function setUp() {
  const spans: Array<{ name: string; parent: string | undefined }> = [];
  const telemetry: Telemetry = {
    ...noTelemetry,
    tracer: {
      ...noTelemetry.tracer,
      span: (name: string, options: SpanOptions, work) => {
        spans.push({ name, parent: options.parent });
        return work({ context: `${name}-context`, set: () => undefined });
      },
    },
  };
  const inner = new FaultyDfs(new MemoryDfs(systemClock));
  return { inner, spans, dfs: new MeteredDfs(inner, { clock: systemClock, telemetry }) };
}

describe('a metered file system', () => {
  it('counts requests, bytes and failures', async () => {
    const { dfs, inner } = setUp();
    await dfs.put('a', new Uint8Array(10));
    await dfs.putIfAbsent('a', new Uint8Array(99));
    await dfs.read('a', 0, 4);
    await dfs.readAll('a');
    const writer = await dfs.createWriter('b');
    await writer.append(new Uint8Array(5));
    await writer.close();
    for await (const _ of dfs.list('')) break;
    inner.failWhen(() => true, 'before');
    await expect(dfs.remove('a')).rejects.toMatchObject({ kind: 'retry' });
    expect(dfs.stats).toMatchObject({ bytesWritten: 15, bytesRead: 14, errors: 1 });
    expect(dfs.stats.requests).toMatchObject({ put: 1, putIfAbsent: 1, read: 1, readAll: 1, append: 1, remove: 1 });
  });

  it('records a span under the parent that is given, and none without', async () => {
    const { dfs, spans } = setUp();
    await dfs.put('a', new Uint8Array(1));
    expect(spans).toEqual([]);
    await dfs.put('a', new Uint8Array(1), 'parent');
    await dfs.read('a', 0, 1, 'parent');
    const writer = await dfs.createWriter('b', 'parent');
    await writer.close();
    expect(spans).toEqual(
      ['dfs.put', 'dfs.read', 'dfs.createWriter', 'dfs.closeWriter'].map((name) => ({ name, parent: 'parent' })),
    );
  });
});
