import assert from 'node:assert/strict';
import { prefixEnd } from '@millrace/kernel';
import { packKeys } from '../packed.ts';
import type { ValueView } from '../store.ts';
import type { StateStoreCase } from './conformance-port.ts';
import { batchOf, keyIn, read, scanned, specOf, text, write } from './table-driver.ts';

const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex');

/** What was written is read: at once, in order, whatever its size. */
export const readingCases: readonly StateStoreCase[] = [
  {
    name: 'an empty table has nothing',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      assert.deepEqual(await read(table, keyIn(1, 'a'), keyIn(2, 'b')), [undefined, undefined]);
      assert.deepEqual((await scanned(table, { start: text('') })).keys, []);
      assert.deepEqual(await read(table), []);
    },
  },
  {
    name: 'a value is read in the same tick as it was written',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const writing = table.write(batchOf([[keyIn(1, 'a'), 'one']]));
      const reading = table.multiGet(packKeys([keyIn(1, 'a')]));
      const after = table.write(batchOf([[keyIn(1, 'a'), 'two']]));
      const values = await reading;
      await Promise.all([writing, after]);
      assert.equal(Buffer.from(values.bytes).toString(), 'one', 'a read sees the writes before it and none after');
      assert.deepEqual(await read(table, keyIn(1, 'a')), ['two']);
    },
  },
  {
    name: 'values come in the order of the keys asked, repeated and absent ones included',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A'], [keyIn(1, 'b'), 'B'], [keyIn(0, 'c'), 'C']);
      const keys = [keyIn(1, 'b'), keyIn(0, 'c'), keyIn(1, 'x'), keyIn(1, 'a'), keyIn(1, 'b')];
      assert.deepEqual(await read(table, ...keys), ['B', 'C', undefined, 'A', 'B']);
    },
  },
  {
    name: 'the last write of a key in a batch wins',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const [a, b, c] = [keyIn(1, 'a'), keyIn(1, 'b'), keyIn(1, 'c')];
      await write(table, [a, '1'], [a, '2'], [b, '1'], [b, undefined], [c, undefined], [c, '3']);
      assert.deepEqual(await read(table, a, b, c), ['2', undefined, '3']);
    },
  },
  {
    name: 'a deleted key stays deleted, and can be written again',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const key = keyIn(3, 'k');
      await write(table, [key, 'old']);
      await table.snapshot(1);
      await write(table, [key, undefined]);
      assert.deepEqual(await read(table, key), [undefined]);
      assert.deepEqual((await scanned(table, { start: text('') })).keys, []);
      await table.snapshot(2);
      assert.deepEqual(await read(table, key), [undefined]);
      await write(table, [key, 'new']);
      assert.deepEqual(await read(table, key), ['new']);
    },
  },
  {
    name: 'a batch may be reused as soon as write has returned',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const batch = batchOf([[keyIn(1, 'a'), 'first']]);
      const writing = table.write(batch);
      batch.arena.bytes.fill(0xff);
      batch.reset();
      await writing;
      assert.deepEqual(await read(table, keyIn(1, 'a')), ['first']);
    },
  },
  {
    name: 'empty values are values, and keys may be prefixes of each other',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const short = keyIn(1, '');
      await write(table, [short, ''], [keyIn(1, 'a'), 'A'], [keyIn(1, 'a\0'), 'A0']);
      assert.deepEqual(await read(table, short, keyIn(1, 'a'), keyIn(1, 'a\0')), ['', 'A', 'A0']);
      const all = await scanned(table, { start: text('') });
      assert.deepEqual(all.keys, [short, keyIn(1, 'a'), keyIn(1, 'a\0')].map(hex));
      assert.deepEqual(all.values, ['', 'A', 'A0']);
    },
  },
  {
    name: 'values of a megabyte are kept whole',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const large = 'x'.repeat(1 << 20);
      await write(table, [keyIn(1, 'a'), 'A'], [keyIn(1, 'b'), large], [keyIn(1, 'c'), 'C']);
      const values = await read(table, keyIn(1, 'a'), keyIn(1, 'b'), keyIn(1, 'c'));
      assert.ok(values[0] === 'A' && values[1] === large && values[2] === 'C');
    },
  },
  {
    name: 'peek is right when it answers, and finds values of other tables never',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const other = await store.openTable(specOf({ operator: 'other' }), []);
      await write(table, [keyIn(1, 'a'), 'A']);
      await write(other, [keyIn(1, 'z'), 'Z']);
      const view: ValueView = { bytes: text(''), start: 0, end: 0 };
      const framed = Uint8Array.of(7, ...keyIn(1, 'a'), 7);
      const found = table.peek(framed, 1, framed.length - 1, view);
      assert.notEqual(found, 'absent');
      if (found === 'found') assert.equal(Buffer.from(view.bytes.subarray(view.start, view.end)).toString(), 'A');
      const missing = keyIn(1, 'z');
      assert.notEqual(table.peek(missing, 0, missing.length, view), 'found');
    },
  },
  {
    name: 'tables are apart: by operator and by job',
    async run({ store }) {
      const specs = [specOf(), specOf({ operator: 'two' }), specOf({ job: 'second' })];
      const tables = await Promise.all(specs.map((spec) => store.openTable(spec, [])));
      for (const [i, table] of tables.entries()) await write(table, [keyIn(1, 'k'), `value ${i}`]);
      for (const [i, table] of tables.entries()) assert.deepEqual(await read(table, keyIn(1, 'k')), [`value ${i}`]);
    },
  },
  {
    name: 'a scan gives the range, in byte order, end excluded',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const keys = ['b', 'ab', 'a', 'a\u00ff', 'c', 'aa'].map((rest) => keyIn(2, rest));
      await write(table, ...keys.map((key) => [key, 'v'] as const), [keyIn(1, 'z'), 'v'], [keyIn(3, ''), 'v']);
      const prefix = keyIn(2, 'a');
      const inPrefix = await scanned(table, { start: prefix, end: prefixEnd(prefix) });
      assert.deepEqual(
        inPrefix.keys,
        ['a', 'aa', 'ab', 'a\u00ff'].map((rest) => hex(keyIn(2, rest))),
      );
      const range = await scanned(table, { start: keyIn(2, 'ab'), end: keyIn(2, 'c') });
      assert.deepEqual(
        range.keys,
        ['ab', 'a\u00ff', 'b'].map((rest) => hex(keyIn(2, rest))),
      );
      const rest = await scanned(table, { start: keyIn(2, 'c') });
      assert.deepEqual(rest.keys, [hex(keyIn(2, 'c')), hex(keyIn(3, ''))]);
    },
  },
  {
    name: 'a scan comes in pages of at most the asked size, none empty',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const keys = Array.from({ length: 25 }, (_, i) => keyIn(1, String(i).padStart(3, '0')));
      await write(table, ...keys.map((key, i) => [key, String(i)] as const));
      const all = await scanned(table, { start: text(''), pageEntriesMax: 10 });
      assert.deepEqual(all.keys, keys.map(hex));
      assert.deepEqual(
        all.values,
        keys.map((_, i) => String(i)),
      );
      assert.ok(all.pages.length >= 3 && all.pages.every((count) => count > 0 && count <= 10), String(all.pages));
    },
  },
  {
    name: 'a scan shows the table as of its call, whatever is written while it runs',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      const keys = Array.from({ length: 20 }, (_, i) => keyIn(1, String(i).padStart(3, '0')));
      await write(table, ...keys.map((key) => [key, 'before'] as const));
      const scan = table.scan({ start: text(''), pageEntriesMax: 5 });
      await write(
        table,
        [keys[0] as Uint8Array, 'after'],
        [keyIn(1, '0005'), 'after'],
        [keys[19] as Uint8Array, undefined],
      );
      let seen = 0;
      for await (const page of scan) {
        seen += page.keys.count;
        const values = Buffer.from(page.values.bytes).toString();
        assert.ok(!values.includes('after'), 'a scan must not see later writes');
        await write(table, [keys[18] as Uint8Array, 'after'], [keyIn(1, '0185'), 'after']);
      }
      assert.equal(seen, 20);
    },
  },
  {
    name: 'a scan that is left early frees what it held',
    async run({ store }) {
      const table = await store.openTable(specOf(), []);
      await write(table, [keyIn(1, 'a'), 'A'], [keyIn(1, 'b'), 'B']);
      for await (const page of table.scan({ start: text(''), pageEntriesMax: 1 })) {
        assert.equal(page.keys.count, 1);
        break;
      }
      assert.deepEqual(await read(table, keyIn(1, 'b')), ['B']);
      await table.close();
    },
  },
];
