import assert from 'node:assert/strict';
import type { ValueView } from '../store.ts';
import { conformanceStartMs, type StateStoreCase } from './conformance-port.ts';
import { asStored, keyIn, read, scanned, specOf, text, write } from './table-driver.ts';

const inMs = (ms: number): number => conformanceStartMs + ms;

/** Entries end when their time is over, and take what they replaced with them. */
export const timeCases: readonly StateStoreCase[] = [
  {
    name: 'an entry is gone at its expiry and not before',
    async run({ store, clock }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A', inMs(100)], [keyIn(1, 'b'), 'B']);
      clock.advance(99);
      assert.deepEqual(await read(table, keyIn(1, 'a'), keyIn(1, 'b')), ['A', 'B']);
      clock.advance(1);
      assert.deepEqual(await read(table, keyIn(1, 'a'), keyIn(1, 'b')), [undefined, 'B']);
      const view: ValueView = { bytes: text(''), start: 0, end: 0 };
      assert.notEqual(table.peek(keyIn(1, 'a'), 0, keyIn(1, 'a').length, view), 'found');
    },
  },
  {
    name: 'scans leave expired entries out',
    async run({ store, clock }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A', inMs(100)], [keyIn(1, 'b'), 'B', inMs(300)], [keyIn(1, 'c'), 'C']);
      clock.advance(200);
      assert.deepEqual((await scanned(table, { start: text('') })).values, ['B', 'C']);
    },
  },
  {
    name: 'an expired entry hides the older value beneath it',
    async run({ store, clock }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'older']);
      await table.snapshot(1);
      await write(table, [keyIn(1, 'a'), 'newer', inMs(100)]);
      await table.snapshot(2);
      clock.advance(100);
      assert.deepEqual(await read(table, keyIn(1, 'a')), [undefined]);
      assert.deepEqual((await scanned(table, { start: text('') })).values, []);
    },
  },
  {
    name: 'a write without expiry lifts the expiry of the one before',
    async run({ store, clock }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), '1', inMs(100)]);
      await write(table, [keyIn(1, 'a'), '2']);
      clock.advance(1000);
      assert.deepEqual(await read(table, keyIn(1, 'a')), ['2']);
    },
  },
  {
    name: 'an expiry goes through snapshot and restore',
    async run({ store, clock, another }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A', inMs(100)], [keyIn(1, 'b'), 'B', inMs(1000)]);
      const handle = asStored(await table.snapshot(1));
      const restored = await (await another()).openTable(specOf({ generation: 2 }), [handle]);
      assert.deepEqual(await read(restored, keyIn(1, 'a'), keyIn(1, 'b')), ['A', 'B']);
      clock.advance(100);
      assert.deepEqual(await read(restored, keyIn(1, 'a'), keyIn(1, 'b')), [undefined, 'B']);
    },
  },
];
