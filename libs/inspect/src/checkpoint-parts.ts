import type { CheckpointContents } from '@millrace/proto/control';
import type { SnapshotHandle } from '@millrace/state';

/** One subtask's part of an operator at a checkpoint. */
export interface OperatorPart {
  readonly operator: string;
  readonly subtask: number;
  readonly table: SnapshotHandle | undefined;
  /** Entries of operator state: source positions, sink transactions. */
  readonly listEntries: number;
  /** Bytes of records that were under way, and the holders of their file. */
  readonly inFlightBytes: number;
  readonly inFlightHolders: readonly string[];
}

interface OperatorJson {
  readonly operator: string;
  readonly subtask: number;
  readonly table?: SnapshotHandle;
  readonly list?: readonly unknown[];
  readonly inFlight?: { readonly file?: { readonly sizeBytes: number; readonly holders: readonly string[] } };
}

export function partsOf(contents: CheckpointContents): OperatorPart[] {
  return contents.slots.flatMap((slot) =>
    (slot as unknown as { readonly operators: readonly OperatorJson[] }).operators.map(
      ({ operator, subtask, table, list, inFlight }) => ({
        operator,
        subtask,
        table,
        listEntries: list?.length ?? 0,
        inFlightBytes: inFlight?.file?.sizeBytes ?? 0,
        inFlightHolders: inFlight?.file?.holders ?? [],
      }),
    ),
  );
}

/** A holder that a checkpoint names, and what of the checkpoint it is. */
export interface NamedHolder {
  readonly path: string;
  readonly part: string;
}

export function holdersOf(contents: CheckpointContents): NamedHolder[] {
  return partsOf(contents).flatMap(({ operator, subtask, table, inFlightHolders }) => [
    ...(table?.holders ?? []).map((path) => ({ path, part: `${operator}-${subtask}` })),
    ...inFlightHolders.map((path) => ({ path, part: `${operator}-${subtask} (records under way)` })),
  ]);
}
