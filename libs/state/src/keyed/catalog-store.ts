import { ByteReader, ByteWriter, MillraceError } from '@millrace/kernel';
import { json } from '../codecs/primitives.ts';
import { catalogStateId, writePrefix } from '../keys/key-layout.ts';
import { packedValue, packKeys } from '../packed.ts';
import type { StateTable } from '../store.ts';
import type { Catalog } from './catalog.ts';
import type { TableWriter } from './table-writer.ts';

const codec = json<Catalog>();

function keyOfCatalog(keyGroup: number): Uint8Array {
  const writer = new ByteWriter(4);
  writePrefix(writer, keyGroup, catalogStateId);
  return writer.copy();
}

/** The catalog that the restored table was written with; undefined when it has none. */
export async function loadCatalog(table: StateTable): Promise<Catalog | undefined> {
  const values = await table.multiGet(packKeys([keyOfCatalog(table.spec.keyGroups.start)]));
  const value = packedValue(values, 0);
  if (value === undefined) return undefined;
  return checkedCatalog(codec.decode(new ByteReader(value)));
}

/** Refuses a catalog of a version that is not known here. */
export function checkedCatalog(catalog: Catalog): Catalog {
  if (catalog.version === 1) return catalog;
  throw new MillraceError(
    'state-incompatible',
    `the state was written by a version of Millrace that this one cannot read`,
  );
}

/** Writes the catalog into each key group, because each may be all that a later subtask takes over. */
export function saveCatalog(catalog: Catalog, table: StateTable, writer: TableWriter): void {
  const { start, end } = table.spec.keyGroups;
  for (let keyGroup = start; keyGroup <= end; keyGroup++) {
    writer.batch.begin();
    writePrefix(writer.batch.arena, keyGroup, catalogStateId);
    writer.batch.endKey();
    codec.encode(catalog, writer.batch.arena);
    writer.batch.put();
    writer.added();
  }
}
