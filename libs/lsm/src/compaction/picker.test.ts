import { expect, test } from 'vitest';
import { addRun, emptyManifest, type Manifest, manifestTable } from '../manifest/manifest.ts';
import type { TableInfo } from '../sst/table-info.ts';
import { tableOf } from '../testing/tables.ts';
import { type Compaction, type CompactionPolicy, pickCompaction } from './picker.ts';

const policy: CompactionPolicy = { l0Runs: 2, levelBytes: 2500, levelFactor: 4, levelsMax: 3, expiredShare: 0.5 };

function manifestOf(l0: readonly TableInfo[], ...levels: ReadonlyArray<readonly TableInfo[]>): Manifest {
  const start: Manifest = { ...emptyManifest, levels: levels.map((run) => run.map((info) => manifestTable(info))) };
  return l0.reduceRight((manifest, info) => addRun(manifest, [info]), start);
}

function shown(compaction: Compaction | undefined): unknown {
  if (compaction === undefined) return undefined;
  const { inputs, ...rest } = compaction;
  return { ...rest, inputs: inputs.map((run) => run.map((table) => table.info.file.id).join(' ')) };
}

const pick = (manifest: Manifest, nowMs = 0): unknown => shown(pickCompaction(manifest, policy, nowMs));

test('nothing is due while every level is within its bounds', () => {
  expect(pick(manifestOf([tableOf('n', 'a', 'z')], [tableOf('1', 'a', 'm'), tableOf('2', 'n', 'z')]))).toBeUndefined();
});

test('L0 goes into L1 with everything between its first and its last key', () => {
  const l1 = [tableOf('1', 'a', 'b'), tableOf('2', 'e', 'f'), tableOf('3', 'y', 'z')];
  const manifest = manifestOf([tableOf('n', 'c', 'd'), tableOf('o', 'w', 'x')], l1, [tableOf('deep', 'a', 'z')]);
  expect(pick(manifest)).toEqual({ kind: 'merge', level: 1, isBottom: false, inputs: ['n', 'o', '2'] });
});

test('a merge into the deepest level that has its keys may drop tombstones', () => {
  const manifest = manifestOf([tableOf('n', 'c', 'd'), tableOf('o', 'a', 'f')], [], [tableOf('deep', 'g', 'z')]);
  expect(pick(manifest)).toMatchObject({ isBottom: true });
});

test('of an overfull level the table goes that drags least along, by name only if it drags nothing', () => {
  const l1 = [tableOf('1', 'a', 'h'), tableOf('2', 'i', 'p'), tableOf('3', 'q', 'z')];
  const l2 = [tableOf('4', 'a', 'c'), tableOf('5', 'd', 'i'), tableOf('6', 'j', 'p')];
  expect(pick(manifestOf([], l1, l2))).toEqual({ kind: 'move', level: 2, isBottom: false, inputs: ['3'] });
  const covered = [...l2, tableOf('7', 'q', 'z')];
  expect(pick(manifestOf([], l1, covered))).toEqual({ kind: 'merge', level: 2, isBottom: true, inputs: ['3', '7'] });
});

test('a wholly expired table goes when it hides nothing, and stays while it does', () => {
  const dead = { expiring: 9, tombstones: 1, expiresMinMs: 5, expiresMaxMs: 10 };
  const free = manifestOf([], [tableOf('1', 'a', 'm', dead)], [tableOf('2', 'n', 'z')]);
  expect(pick(free, 9)).not.toMatchObject({ kind: 'drop' });
  expect(pick(free, 10)).toEqual({ kind: 'drop', level: 1, isBottom: true, inputs: ['1'] });
  expect(pick(manifestOf([], [tableOf('1', 'a', 'm', dead)], [tableOf('2', 'b', 'c')]), 10)).toBeUndefined();
});

test('a table of the bottom is rewritten in place when half of it has expired', () => {
  const half = { expiring: 10, expiresMinMs: 100, expiresMaxMs: 200 };
  const manifest = manifestOf([], [], [tableOf('1', 'a', 'm', half), tableOf('2', 'n', 'z')]);
  expect(pick(manifest, 149)).toBeUndefined();
  expect(pick(manifest, 150)).toEqual({ kind: 'merge', level: 2, isBottom: true, inputs: ['1'] });
});
