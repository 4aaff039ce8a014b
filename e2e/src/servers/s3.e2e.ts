import dns from 'node:dns';
import { type Dfs, openDfs } from '@millrace/dfs';
import { dfsConformance } from '@millrace/dfs/testing';
import { SeededRandom, systemClock, systemRandom } from '@millrace/kernel';
import { noTelemetry } from '@millrace/telemetry';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectExactFlightsOn } from '../support/flights-on-store.ts';
import { type Fate, LossyProxy, type ProxiedRequest } from '../support/lossy-proxy.ts';
import { versitygwMissing } from '../support/versitygw/binary.ts';
import { S3Server, virtualDomain } from '../support/versitygw/s3-server.ts';

const missing = versitygwMissing();
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const shared = { clock: systemClock, random: systemRandom, telemetry: noTelemetry };

describe.skipIf(missing !== undefined)(
  `a real S3 service${missing === undefined ? '' : `: skipped, ${missing}`}`,
  () => {
    let server: S3Server;
    beforeAll(async () => {
      Object.assign(process.env, S3Server.env);
      server = await S3Server.start();
    }, 900_000);
    afterAll(() => server?.[Symbol.asyncDispose]());

    let homes = 0;
    dfsConformance('S3', async () => {
      const dfs = await openDfs(server.uri(`conformance/${homes++}`), shared);
      return { dfs, cleanup: () => dfs.close() };
    });

    describe('behind a network that loses answers', () => {
      let proxy: LossyProxy;
      beforeAll(async () => {
        proxy = await LossyProxy.start(server.port);
      });
      afterAll(() => proxy?.[Symbol.asyncDispose]());

      async function open(name: string, parameters: Readonly<Record<string, string>> = {}): Promise<Dfs> {
        proxy.fate = () => 'pass';
        const endpoint = `http://127.0.0.1:${proxy.port}`;
        return await openDfs(server.uri(`lossy/${name}`, { endpoint, ...parameters }), shared);
      }

      /** The first request that matches has this fate. */
      function once(fate: Fate, matches: (request: ProxiedRequest) => boolean): () => number {
        let struck = 0;
        proxy.fate = (request) => (matches(request) && struck++ === 0 ? fate : 'pass');
        return () => struck;
      }

      test('a conditional put whose answer was lost is known to have won, and another still loses', async () => {
        const dfs = await open('conditional');
        const struck = once('lose-answer', ({ method }) => method === 'PUT');
        expect(await dfs.putIfAbsent('a', bytesOf('mine'))).toBe(true);
        expect(struck()).toBeGreaterThan(1);
        expect(await dfs.putIfAbsent('a', bytesOf('other'))).toBe(false);
        await dfs.close();
      });

      test('a file in parts is whole though a part and the answer to its completion are lost', async () => {
        const dfs = await open('parts', { partBytes: '5m' });
        let parts = 0;
        let completions = 0;
        proxy.fate = ({ method, url }) => {
          if (method === 'PUT' && url.includes('partNumber=2') && parts++ === 0) return 'lose-answer';
          if (method === 'POST' && url.includes('uploadId=') && completions++ === 0) return 'lose-answer';
          return 'pass';
        };
        const content = Uint8Array.from({ length: 17 * 1024 * 1024 }, (_, i) => (i * 31 + (i >> 12)) & 0xff);
        const writer = await dfs.createWriter('big');
        for (let at = 0; at < content.length; at += 1 << 20) await writer.append(content.subarray(at, at + (1 << 20)));
        expect(await dfs.stat('big')).toBeUndefined();
        await writer.close();
        expect([parts, completions]).toEqual([2, 2]);
        expect(Buffer.compare((await dfs.readAll('big')) as Uint8Array, content)).toBe(0);
        await dfs.close();
      });

      test('a storm of 503 is got over, on every kind of request', async () => {
        const dfs = await open('storm', { attempts: '30' });
        const random = new SeededRandom(5);
        let refused = 0;
        proxy.fate = () => (random.float() < 0.4 ? (refused++, 'busy') : 'pass');
        for (let i = 0; i < 10; i++) {
          await dfs.put(`${i}`, bytesOf(`${i}`));
          expect(await dfs.putIfAbsent(`${i}`, bytesOf('again'))).toBe(false);
          expect(await dfs.read(`${i}`, 0, 9)).toEqual(bytesOf(`${i}`));
        }
        const writer = await dfs.createWriter('written');
        await writer.append(bytesOf('x'));
        await writer.close();
        await dfs.remove('0');
        const paths: string[] = [];
        for await (const { path } of dfs.list('')) paths.push(path);
        expect(paths).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', 'written']);
        expect(refused).toBeGreaterThan(10);
        await dfs.close();
      });
    });

    test('buckets may be host names', async () => {
      const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((host: string, options: unknown, answer: unknown) => {
        expect(host).toBe(`state.${virtualDomain}`);
        const address = { address: '127.0.0.1', family: 4 };
        if ((options as { all?: boolean }).all === true) (answer as (e: null, a: object[]) => void)(null, [address]);
        else (answer as (e: null, a: string, f: number) => void)(null, address.address, address.family);
      }) as typeof dns.lookup);
      const dfs = await openDfs(
        server.uri('hosts', { endpoint: `http://${virtualDomain}:${server.port}`, pathStyle: 'false' }),
        shared,
      );
      await dfs.put('a', bytesOf('x'));
      expect(lookup).toHaveBeenCalled();
      await dfs.close();
      lookup.mockRestore();
      const sameByPath = await openDfs(server.uri('hosts'), shared);
      expect(await sameByPath.readAll('a')).toEqual(bytesOf('x'));
      await sameByPath.close();
    });

    test.each([
      ['a bucket that is not there', () => server.uri('x').replace('s3://state', 's3://nowhere'), 'dfs-unsupported'],
      [
        'a service that does not answer',
        () => server.uri('x', { endpoint: 'http://127.0.0.1:1', attempts: '2' }),
        'dfs-unavailable',
      ],
    ])('%s is told at the start', async (_, uri, code) => {
      await expect(openDfs(uri(), shared)).rejects.toMatchObject({ code });
    });

    test('a wrong secret is told at the start, by what to do', async () => {
      process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
      const opening = openDfs(server.uri('x'), shared);
      await expect(opening.finally(() => Object.assign(process.env, S3Server.env))).rejects.toMatchObject({
        code: 'dfs-denied',
      });
    });

    test('flights with all state on S3 give exactly the independent result, though runners are killed', async () => {
      await expectExactFlightsOn({ dfs: server.uri('flights'), env: S3Server.env });
    });
  },
);
