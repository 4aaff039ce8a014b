import { compareBytes, SeededRandom } from '@millrace/kernel';
import { expect, test } from 'vitest';
import { tableOf } from '../testing/tables.ts';
import { inRange, intersect, type KeyRange } from './key-range.ts';
import {
  addRun,
  allTables,
  clipManifest,
  emptyManifest,
  filesOf,
  type Manifest,
  replaceTables,
  unionManifests,
} from './manifest.ts';
import { manifestFromJson, manifestToJson } from './manifest-json.ts';

const range = (start: string, end?: string): KeyRange => ({
  start: Buffer.from(start),
  ...(end === undefined ? {} : { end: Buffer.from(end) }),
});

const base = addRun(addRun(emptyManifest, [tableOf('old', 'a', 'm')]), [tableOf('new', 'c', 'z')]);

function ids(manifest: Manifest): string[] {
  return allTables(manifest).map((table) => table.info.file.id);
}

test('a newer run comes first', () => {
  expect(ids(base)).toEqual(['new', 'old']);
});

test('clipping drops what lies outside and narrows the rest', () => {
  expect(ids(clipManifest(base, range('a', 'c')))).toEqual(['old']);
  expect(ids(clipManifest(base, range('m', 'n')))).toEqual(['new', 'old']);
  expect(ids(clipManifest(base, range('n')))).toEqual(['new']);
  expect(allTables(clipManifest(base, range('d', 'f'))).map((table) => table.clip)).toEqual([
    range('d', 'f'),
    range('d', 'f'),
  ]);
});

test('the parts of a manifest put together again see the same keys of the same files', () => {
  const parts = [range('', 'd'), range('d', 'n'), range('n')].map((part) => clipManifest(base, part));
  const whole = unionManifests(parts);
  expect(whole.l0.length).toBe(base.l0.length);
  expect(new Set(filesOf(whole).map((file) => file.id))).toEqual(new Set(['new', 'old']));
});

test('manifests with keys in common cannot be put together', () => {
  expect(() => unionManifests([clipManifest(base, range('a', 'f')), clipManifest(base, range('e'))])).toThrow(
    expect.objectContaining({ code: 'invariant-broken' }),
  );
});

test('replacing takes the inputs out and keeps a level in order', () => {
  const removed = new Set(allTables(base));
  const merged = replaceTables(base, {
    removed,
    level: 1,
    added: [tableOf('2', 'n', 'z'), tableOf('1', 'a', 'm')].map((info) => ({
      info,
      clip: range(''),
      start: info.first,
    })),
  });
  expect(merged.l0).toEqual([]);
  expect(ids(merged)).toEqual(['1', '2']);
});

test('a manifest goes through JSON unchanged, and an unknown version is refused', () => {
  const clipped = clipManifest(base, range('b', 'y'));
  const json = JSON.parse(JSON.stringify(manifestToJson(clipped))) as ReturnType<typeof manifestToJson>;
  expect(manifestToJson(manifestFromJson(json))).toEqual(manifestToJson(clipped));
  expect(() => manifestFromJson({ ...json, version: 2 })).toThrow(expect.objectContaining({ code: 'lsm-format' }));
});

test('a key is in an intersection exactly when it is in both ranges (random ranges)', () => {
  const random = new SeededRandom(5);
  const key = (): Uint8Array => Uint8Array.from({ length: random.below(3) }, () => random.below(4));
  for (let i = 0; i < 2000; i++) {
    const make = (): KeyRange => {
      const [a, b] = [key(), key()].sort(compareBytes) as [Uint8Array, Uint8Array];
      return random.below(4) === 0 || compareBytes(a, b) === 0 ? { start: a } : { start: a, end: b };
    };
    const [a, b, probe] = [make(), make(), key()];
    const both = intersect(a, b);
    const expected = inRange(a, probe, 0, probe.length) && inRange(b, probe, 0, probe.length);
    expect(both !== undefined && inRange(both, probe, 0, probe.length)).toBe(expected);
  }
});
