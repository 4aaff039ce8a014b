import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Dfs } from '../dfs.ts';
import { openDfs } from '../open-dfs.ts';

const options = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };

/** What no real service does when it is asked to; the real one is in e2e/src/servers/s3.e2e.ts. */
type Answer = (request: http.IncomingMessage, response: http.ServerResponse) => void;

describe('a service that speaks the language of S3', () => {
  let server: http.Server;
  let answer: Answer;
  let requests: number;
  const opened: Dfs[] = [];

  beforeEach(async () => {
    process.env['AWS_ACCESS_KEY_ID'] = 'key';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'secret';
    requests = 0;
    // A good one: it refuses conditional puts, since all exists.
    answer = (_, response) => response.writeHead(412).end();
    server = http.createServer((request, response) => {
      requests++;
      request.resume().on('end', () => answer(request, response));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  afterEach(async () => {
    for (const dfs of opened.splice(0)) await dfs.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    delete process.env['AWS_ACCESS_KEY_ID'];
    delete process.env['AWS_SECRET_ACCESS_KEY'];
  });

  async function open(parameters = ''): Promise<Dfs> {
    const { port } = server.address() as AddressInfo;
    const dfs = await openDfs(
      `s3://bucket/home?endpoint=http://127.0.0.1:${port}&pathStyle=true${parameters}`,
      options,
    );
    opened.push(dfs);
    return dfs;
  }

  it('is refused when it ignores the condition of a put', async () => {
    answer = (_, response) => response.writeHead(200).end();
    await expect(open()).rejects.toMatchObject({ code: 'dfs-unsupported', kind: 'setup' });
    expect(requests).toBe(2);
  });

  it('is asked once at the start when it has been used before', async () => {
    await open();
    expect(requests).toBe(1);
  });

  it('a request without an answer ends in time and is repeated', async () => {
    const dfs = await open('&timeoutMs=200');
    let asked = 0;
    answer = (_, response) => {
      if (++asked === 2) response.writeHead(200, { 'content-length': 2 }).end('ok');
    };
    expect(await dfs.readAll('a')).toEqual(new TextEncoder().encode('ok'));
    expect(asked).toBe(2);
  });

  it('an answer that breaks off is repeated, and no half of it is given', async () => {
    const dfs = await open();
    let asked = 0;
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': 4 });
      if (++asked > 1) response.end('full');
      else response.write('fu', () => response.destroy());
    };
    expect(await dfs.readAll('a')).toEqual(new TextEncoder().encode('full'));
    expect(asked).toBe(2);
  });

  it('a full one is no reason to try again', async () => {
    const dfs = await open();
    const before = requests;
    answer = (_, response) => response.writeHead(507).end('<Error><Code>QuotaExceeded</Code></Error>');
    await expect(dfs.put('a', new Uint8Array(1))).rejects.toMatchObject({ code: 'dfs-no-space', kind: 'setup' });
    expect(requests - before).toBe(1);
  });

  it('is not asked faster than its URI allows', async () => {
    const dfs = await open('&requestsPerSecond=20');
    answer = (_, response) => response.writeHead(404).end();
    const startMs = performance.now();
    for (let i = 0; i < 30; i++) await dfs.stat('a');
    expect(performance.now() - startMs).toBeGreaterThan(400);
  });
});
