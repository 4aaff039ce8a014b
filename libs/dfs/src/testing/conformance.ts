import { isKind, MillraceError } from '@millrace/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Dfs, DfsEntry } from '../dfs.ts';

/** One opened file system, empty, and how to get rid of it. */
export interface OpenedDfs {
  readonly dfs: Dfs;
  cleanup(): Promise<void>;
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

/** What every implementation of {@link Dfs} owes its callers, also under decorators. Call at the top of a test file. */
export function dfsConformance(name: string, open: () => Promise<OpenedDfs>): void {
  describe(`${name} as a Dfs`, () => {
    let opened: OpenedDfs;
    let dfs: Dfs;
    beforeEach(async () => {
      opened = await open();
      dfs = opened.dfs;
    });
    afterEach(() => opened.cleanup());

    describe('put', () => {
      it('makes the bytes readable and keeps its own copy of them', async () => {
        const bytes = bytesOf('hello');
        await dfs.put('a/b/c', bytes);
        bytes.fill(0);
        expect(textOf(await dfs.readAll('a/b/c'))).toBe('hello');
      });

      it('replaces, also by fewer bytes', async () => {
        await dfs.put('a', bytesOf('something long'));
        await dfs.put('a', bytesOf('short'));
        expect(textOf(await dfs.readAll('a'))).toBe('short');
        expect((await dfs.stat('a'))?.sizeBytes).toBe(5);
      });

      it('keeps empty files', async () => {
        await dfs.put('empty', new Uint8Array(0));
        expect(await dfs.readAll('empty')).toHaveLength(0);
        expect(await dfs.read('empty', 0, 10)).toHaveLength(0);
        expect((await collect(dfs, '')).map((entry) => [entry.path, entry.sizeBytes])).toEqual([['empty', 0]]);
      });

      it('shows a reader the old bytes or the new ones and never a mixture', async () => {
        const size = 300_000;
        await dfs.put('x', new Uint8Array(size).fill(1));
        let stop = false;
        const reader = (async () => {
          let reads = 0;
          while (!stop) {
            const bytes = (await dfs.readAll('x')) ?? new Uint8Array(0);
            expect(bytes.length).toBe(size);
            expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
            reads++;
          }
          return reads;
        })();
        for (let i = 2; i < 12; i++) await dfs.put('x', new Uint8Array(size).fill(i));
        stop = true;
        expect(await reader).toBeGreaterThan(0);
      });

      it('can be asked for many files of one new directory at once', async () => {
        await Promise.all(range(30).map((i) => dfs.put(`new/dir/${i}`, bytesOf(`${i}`))));
        expect(await paths(dfs, 'new/')).toHaveLength(30);
      });
    });

    describe('putIfAbsent', () => {
      it('creates once and then says false, changing nothing', async () => {
        expect(await dfs.putIfAbsent('d/a', bytesOf('first'))).toBe(true);
        expect(await dfs.putIfAbsent('d/a', bytesOf('second'))).toBe(false);
        expect(textOf(await dfs.readAll('d/a'))).toBe('first');
      });

      it('has one winner among fifty callers, whose bytes stay whole', async () => {
        const size = 20_000;
        const won = await Promise.all(range(50).map((i) => dfs.putIfAbsent('race/x', new Uint8Array(size).fill(i))));
        expect(won.filter((w) => w)).toHaveLength(1);
        const bytes = await dfs.readAll('race/x');
        expect(bytes).toHaveLength(size);
        expect(bytes?.every((byte) => byte === won.indexOf(true))).toBe(true);
      });

      it('never shows half a file to those who look while it is made', async () => {
        const size = 200_000;
        const seen = new Set<number>();
        for (const round of range(5)) {
          const path = `half/${round}`;
          let done = false;
          const put = dfs.putIfAbsent(path, new Uint8Array(size).fill(7)).finally(() => (done = true));
          while (!done) seen.add((await dfs.readAll(path))?.length ?? size);
          await put;
        }
        expect([...seen]).toEqual([size]);
      });

      it('may create again after a removal', async () => {
        await dfs.putIfAbsent('a', bytesOf('1'));
        await dfs.remove('a');
        expect(await dfs.putIfAbsent('a', bytesOf('2'))).toBe(true);
        expect(textOf(await dfs.readAll('a'))).toBe('2');
      });
    });

    describe('read', () => {
      it.each([
        [0, 0, ''],
        [0, 10, '0123456789'],
        [0, 11, '0123456789'],
        [3, 4, '3456'],
        [9, 1, '9'],
        [9, 5, '9'],
        [10, 1, ''],
        [1000, 10, ''],
      ])('from %i, %i bytes: "%s"', async (offset, length, expected) => {
        await dfs.put('digits', bytesOf('0123456789'));
        expect(textOf(await dfs.read('digits', offset, length))).toBe(expected);
      });

      it.each([
        [3, 4, '3456'],
        [8, 5, '89'],
      ])(
        'from %i, %i bytes into memory that is lent: in it or not, and no byte beyond',
        async (offset, length, expected) => {
          await dfs.put('digits', bytesOf('0123456789'));
          const into = new Uint8Array(8).fill(7);
          const bytes = await dfs.read('digits', offset, length, undefined, into);
          expect(textOf(bytes)).toBe(expected);
          const isInside = bytes.buffer === into.buffer;
          expect([...into.subarray(isInside ? expected.length : 0)].every((byte) => byte === 7)).toBe(true);
          expect(isInside ? bytes.byteOffset : 0).toBe(0);
        },
      );

      it('refuses a range that is none', async () => {
        await dfs.put('digits', bytesOf('0123456789'));
        for (const [offset, length] of [
          [-1, 1],
          [0, -1],
          [0.5, 1],
          [0, Number.NaN],
        ] as const) {
          await expect(dfs.read('digits', offset, length)).rejects.toMatchObject({ code: 'bad-argument' });
        }
      });

      it('says dfs-not-found for what is not there, and readAll and stat say undefined', async () => {
        await dfs.put('dir/file', bytesOf('x'));
        for (const path of ['missing', 'dir/missing', 'dir']) {
          await expect(dfs.read(path, 0, 1)).rejects.toMatchObject({ code: 'dfs-not-found' });
          expect(await dfs.readAll(path)).toBeUndefined();
          expect(await dfs.stat(path)).toBeUndefined();
        }
      });

      it('gives bytes that are the caller’s own', async () => {
        await dfs.put('a', bytesOf('abc'));
        (await dfs.read('a', 0, 3)).fill(0);
        ((await dfs.readAll('a')) as Uint8Array).fill(0);
        expect(textOf(await dfs.readAll('a'))).toBe('abc');
      });
    });

    describe('list', () => {
      it('goes by code units of the whole path, across directories', async () => {
        const all = ['a', 'a.b', 'b/c', 'b/c.d', 'b-/x', 'b0', 'b/d/e/f', 'b/d.', 'B', 'é', 'z z', '😀', '\uffee'];
        for (const path of shuffled(all)) await dfs.put(path, bytesOf(path));
        expect(await paths(dfs, '')).toEqual([...all].sort());
      });

      it.each([
        ['', ['j/files/1', 'j/files/10', 'j/files/2', 'j/fill', 'j/record/1', 'j1/files/1', 'k']],
        ['j', ['j/files/1', 'j/files/10', 'j/files/2', 'j/fill', 'j/record/1', 'j1/files/1']],
        ['j/', ['j/files/1', 'j/files/10', 'j/files/2', 'j/fill', 'j/record/1']],
        ['j/fil', ['j/files/1', 'j/files/10', 'j/files/2', 'j/fill']],
        ['j/files', ['j/files/1', 'j/files/10', 'j/files/2']],
        ['j/files/1', ['j/files/1', 'j/files/10']],
        ['j/files/1/', []],
        ['nothing/here', []],
        ['k/', []],
      ])('with prefix "%s"', async (prefix, expected) => {
        for (const path of ['j/files/1', 'j/files/10', 'j/files/2', 'j/fill', 'j/record/1', 'j1/files/1', 'k']) {
          await dfs.put(path, bytesOf(path));
        }
        expect(await paths(dfs, prefix)).toEqual(expected);
      });

      it('tells sizes, and times that do not run backwards', async () => {
        await dfs.put('a', bytesOf('12345'));
        const [entry] = await collect(dfs, 'a');
        expect(entry).toEqual(await dfs.stat('a'));
        expect(entry?.sizeBytes).toBe(5);
        await dfs.put('a', bytesOf('123456'));
        expect((await dfs.stat('a'))?.modifiedMs).toBeGreaterThanOrEqual((entry as DfsEntry).modifiedMs);
      });

      it('may be left early, and files may go while it runs', async () => {
        for (const i of range(200)) await dfs.put(`many/${String(i).padStart(3, '0')}`, bytesOf('x'));
        const seen: string[] = [];
        for await (const entry of dfs.list('many/')) {
          seen.push(entry.path);
          await dfs.remove('many/199');
          if (seen.length === 3) break;
        }
        expect(seen).toEqual(['many/000', 'many/001', 'many/002']);
        expect(await paths(dfs, 'many/')).toHaveLength(199);
      });
    });

    describe('remove', () => {
      it('is idempotent and leaves nothing', async () => {
        await dfs.put('a/b/c', bytesOf('x'));
        await dfs.remove('a/b/c');
        await dfs.remove('a/b/c');
        await dfs.remove('never/was');
        expect(await paths(dfs, '')).toEqual([]);
        expect(await dfs.readAll('a/b/c')).toBeUndefined();
      });

      it('of a file spares its neighbours, and of a directory does nothing', async () => {
        await dfs.put('a/b', bytesOf('x'));
        await dfs.put('a/bc', bytesOf('y'));
        await dfs.remove('a/b');
        await dfs.remove('a');
        expect(await paths(dfs, '')).toEqual(['a/bc']);
      });

      it('does not disturb those who write into the same directory', async () => {
        const writers = range(4).map(async (w) => {
          for (const i of range(25)) {
            const path = `shared/deep/${w}-${i}`;
            const created =
              i % 2 === 0 ? await dfs.put(path, bytesOf(path)) : await dfs.putIfAbsent(path, bytesOf(path));
            expect(created ?? true).toBe(true);
            expect(textOf(await dfs.readAll(path))).toBe(path);
            await dfs.remove(path);
          }
        });
        await Promise.all(writers);
        expect(await paths(dfs, '')).toEqual([]);
      });
    });

    describe('writer', () => {
      it('shows nothing before close and then everything', async () => {
        const writer = await dfs.createWriter('w/file');
        await writer.append(bytesOf('one '));
        await writer.append(bytesOf(''));
        const reused = bytesOf('two');
        await writer.append(reused);
        reused.fill(0);
        expect(await dfs.readAll('w/file')).toBeUndefined();
        expect(await paths(dfs, '')).toEqual([]);
        await writer.close();
        expect(textOf(await dfs.readAll('w/file'))).toBe('one two');
        expect(await paths(dfs, '')).toEqual(['w/file']);
      });

      it('leaves nothing after abort, however often', async () => {
        const writer = await dfs.createWriter('w/file');
        await writer.append(bytesOf('gone'));
        await writer.abort();
        await writer.abort();
        expect(await paths(dfs, '')).toEqual([]);
        expect(await dfs.readAll('w/file')).toBeUndefined();
        await expect(writer.append(bytesOf('x'))).rejects.toBeInstanceOf(MillraceError);
        await expect(writer.close()).rejects.toBeInstanceOf(MillraceError);
        expect(await dfs.readAll('w/file')).toBeUndefined();
      });

      it('keeps what is published when aborted after close', async () => {
        const writer = await dfs.createWriter('w/file');
        await writer.append(bytesOf('kept'));
        await writer.close();
        await writer.abort();
        expect(textOf(await dfs.readAll('w/file'))).toBe('kept');
      });

      it('makes an empty file when nothing was appended, and replaces what was there', async () => {
        await dfs.put('w/file', bytesOf('old'));
        const writer = await dfs.createWriter('w/file');
        expect(textOf(await dfs.readAll('w/file'))).toBe('old');
        await writer.close();
        expect(await dfs.readAll('w/file')).toHaveLength(0);
      });

      it('takes a large file in pieces of any size', async () => {
        const size = 3 * 1024 * 1024 + 17;
        const content = Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
        const writer = await dfs.createWriter('big');
        for (let at = 0, step = 1; at < size; at += step, step = Math.min(step * 3, 700_000)) {
          await writer.append(content.subarray(at, at + step));
        }
        await writer.close();
        expect((await dfs.stat('big'))?.sizeBytes).toBe(size);
        expect(Buffer.compare((await dfs.readAll('big')) as Uint8Array, content)).toBe(0);
        expect(Buffer.compare(await dfs.read('big', 1_000_000, 12_345), content.subarray(1_000_000, 1_012_345))).toBe(
          0,
        );
      });
    });

    describe('paths', () => {
      it.each([
        'with space',
        'ünï/cödé',
        '日本/語',
        'a+b%20c&d=e?f#g',
        'quote\'"',
        'dots..in..name',
        '.hidden/x',
        '~',
        'a:b',
        '-rf',
      ])('takes "%s" as it is', async (path) => {
        await dfs.put(path, bytesOf(path));
        expect(await paths(dfs, '')).toEqual([path]);
        expect(textOf(await dfs.read(path, 0, 1000))).toBe(path);
        expect((await dfs.stat(path))?.path).toBe(path);
        await dfs.remove(path);
        expect(await paths(dfs, '')).toEqual([]);
      });

      it.each([
        '',
        '/',
        '/a',
        'a/',
        'a//b',
        '.',
        '..',
        'a/../b',
        'a/./b',
        'nul\0',
        'line\nbreak',
        '\ud800',
        'x'.repeat(300),
      ])('refuses %j everywhere with kind input', async (path) => {
        const calls = [
          () => dfs.put(path, bytesOf('x')),
          () => dfs.putIfAbsent(path, bytesOf('x')),
          () => dfs.read(path, 0, 1),
          () => dfs.readAll(path),
          () => dfs.stat(path),
          () => dfs.remove(path),
          () => dfs.createWriter(path),
        ];
        for (const call of calls) {
          const error = await call().then(
            () => undefined,
            (e: unknown) => e,
          );
          expect(isKind(error, 'input') && error.code).toBe('dfs-bad-path');
        }
      });

      it.each(['/a', '../', 'a//', 'a/../b'])('refuses the prefix %j', async (prefix) => {
        await expect(paths(dfs, prefix)).rejects.toMatchObject({ code: 'dfs-bad-path' });
      });
    });
  });
}

async function collect(dfs: Dfs, prefix: string): Promise<DfsEntry[]> {
  const entries: DfsEntry[] = [];
  for await (const entry of dfs.list(prefix)) entries.push(entry);
  return entries;
}

async function paths(dfs: Dfs, prefix: string): Promise<string[]> {
  return (await collect(dfs, prefix)).map((entry) => entry.path);
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** A fixed disorder. */
function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item, i) => [(i * 7919) % 13, item] as const)
    .sort((a, b) => a[0] - b[0])
    .map(([, item]) => item);
}
