import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock as clock } from '@millrace/kernel';
import type { SnapshotHandle, StateStore } from '@millrace/state';
import { openRemoteStore } from '@millrace/state-remote';
import { noTelemetry as telemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { batchOf, readText, scanText, specOf } from './testing/table-driver.ts';

let directory: string;
const children: ChildProcess[] = [];
const stores: StateStore[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-state-service-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(stores.splice(0).map((store) => store.close()));
  rmSync(directory, { recursive: true, force: true });
});

interface Started {
  readonly process: ChildProcess;
  readonly line: Record<string, unknown>;
  readonly exited: Promise<number | null>;
}

async function start(...args: readonly string[]): Promise<Started> {
  const env = { ...process.env, MILLRACE_STATE: directory };
  const main = join(import.meta.dirname, 'main.ts');
  const child = spawn(process.execPath, [main, '--port', '0', ...args], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const line = await new Promise<Record<string, unknown>>((resolve) => {
    let text = '';
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString();
      if (text.includes('\n')) resolve(JSON.parse(text.slice(0, text.indexOf('\n'))) as Record<string, unknown>);
    });
  });
  return { process: child, line, exited };
}

function connect({ line }: Started): StateStore {
  const store = openRemoteStore({ address: String(line['address']), clock, telemetry });
  stores.push(store);
  return store;
}

describe('the state-service process', { timeout: 90_000 }, () => {
  it('loses nothing of a snapshot to kill -9: another process restores it', async () => {
    const first = await start();
    expect(first.line).toMatchObject({ ready: 'state-service', backend: 'lsm', state: directory });
    const table = await connect(first).openTable(specOf(), []);
    await table.write(batchOf({ a: 'A', b: 'B' }));
    const handle = JSON.parse(JSON.stringify(await table.snapshot(1))) as SnapshotHandle;
    expect(handle.store).toBe('lsm');
    await table.write(batchOf({ a: 'unsaved', c: 'unsaved' }));
    first.process.kill('SIGKILL');
    await first.exited;
    await expect(readText(table, 'a')).rejects.toMatchObject({ code: 'state-remote-broken', kind: 'retry' });

    const second = await start();
    const restored = await connect(second).openTable(specOf({ generation: 2 }), [handle]);
    expect(await scanText(restored)).toEqual({ a: 'A', b: 'B' });
    await restored.write(batchOf({ a: 'A2' }));
    const next = await restored.snapshot(2);
    expect(next.bytesLinked).toBeGreaterThan(0);
    second.process.kill('SIGTERM');
    expect(await second.exited).toBe(0);
  });

  it('serves shards on its own disk: after kill -9 the next process on the same directory restores them', async () => {
    const args = ['--backend', 'kv', '--directory', join(directory, 'own'), '--metrics-port', '0'];
    const first = await start(...args);
    expect(first.line).toMatchObject({ ready: 'state-service', backend: 'kv' });
    const table = await connect(first).openTable(specOf(), []);
    await table.write(batchOf({ a: 'A', b: 'B' }));
    const handle = JSON.parse(JSON.stringify(await table.snapshot(1))) as SnapshotHandle;
    expect(handle).toMatchObject({ store: 'kv', holders: [expect.stringContaining('job/snapshots/1/shards')] });
    await table.write(batchOf({ a: 'unsaved' }));
    const metrics = await fetch(`http://${String(first.line['metrics'])}/metrics`);
    expect(await metrics.text()).toMatch(/^millrace_kv_tables\S* 1$/m);
    first.process.kill('SIGKILL');
    await first.exited;

    const second = await start(...args);
    const restored = await connect(second).openTable(specOf({ generation: 2 }), [handle]);
    expect(await scanText(restored)).toEqual({ a: 'A', b: 'B' });
    await expect(connect(second).openTable(specOf({ generation: 1 }), [])).rejects.toMatchObject({ kind: 'fenced' });
  });

  it('serves a backend of another make by its path, with its options', async () => {
    const backend = join(import.meta.dirname, 'testing/example-backend.fixture.ts');
    const { line } = await start('--backend', backend, '--backend-options', '{"name":"mine"}');
    const store = openRemoteStore({ address: String(line['address']), clock, telemetry });
    stores.push(store);
    const table = await store.openTable(specOf(), []);
    await table.write(batchOf({ a: 'A' }));
    expect(await readText(table, 'a', 'b')).toEqual(['A', undefined]);
    expect(store.name).toBe('mine');
  });

  it('says what a backend that cannot be loaded lacks', async () => {
    const { line, exited } = await start('--backend', join(import.meta.dirname, 'settings.ts'));
    expect(line).toMatchObject({ error: { code: 'bad-setting', details: { setting: 'backend' } } });
    expect(JSON.stringify(line)).toContain('createStateBackend');
    expect(await exited).toBe(1);
  });

  it('serves only clients that show its token', async () => {
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, 'secret\n');
    const { line } = await start('--backend', 'memory', '--token-file', tokenFile);
    const address = String(line['address']);
    const open = (token?: string) => {
      const store = openRemoteStore({ address, clock, telemetry, ...(token === undefined ? {} : { rpc: { token } }) });
      stores.push(store);
      return store.openTable(specOf(), []);
    };
    await expect(open()).rejects.toMatchObject({ code: 'state-service-token' });
    await expect(open('other')).rejects.toMatchObject({ code: 'state-service-token' });
    await expect(open('secret')).resolves.toMatchObject({ spec: specOf() });
  });

  it('serves others encrypted: to clients that know who signed its certificate', async () => {
    const tls = (name: string): string => join(import.meta.dirname, 'testing/tls', name);
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, 'secret');
    const args = ['--tls-cert', tls('cert.pem'), '--tls-key', tls('key.pem'), '--token-file', tokenFile];
    const { line } = await start('--backend', 'memory', '--host', '0.0.0.0', ...args);
    const address = `localhost:${String(line['address']).split(':')[1]}`;
    const open = (tlsCa?: Uint8Array) => {
      const store = openRemoteStore({ address, clock, telemetry, rpc: { token: 'secret', tlsCa } });
      stores.push(store);
      return store.openTable(specOf(), []);
    };
    const table = await open(readFileSync(tls('cert.pem')));
    await table.write(batchOf({ a: 'A' }));
    expect(await readText(table, 'a')).toEqual(['A']);
    await expect(open()).rejects.toMatchObject({ kind: 'retry' });
  });

  it('refuses an address that others can reach, naming the setting', async () => {
    const { line, exited } = await start('--host', '0.0.0.0');
    expect(line).toMatchObject({ error: { code: 'bad-setting', details: { setting: 'host', value: '0.0.0.0' } } });
    expect(await exited).toBe(1);
  });
});
