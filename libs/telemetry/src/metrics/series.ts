import type { Attributes } from '../ports.ts';

const seriesMax = 1000;
const overflow: Attributes = { overflow: 'true' };

/** Labels as one text, the same for the same labels in any order. */
export function labelsKey(labels: Attributes): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The cells of one metric by label values. Label values must come from small sets; beyond `seriesMax` of them all
 * further ones share the cell `overflow="true"`, so that a mistake costs no memory.
 */
export class Series<Cell> {
  readonly #make: () => Cell;
  readonly #cells = new Map<string, { readonly labels: Attributes; readonly cell: Cell }>();
  /** The cell without labels, which the hot path uses: no key is built for it. */
  #plain: Cell | undefined;

  constructor(make: () => Cell) {
    this.#make = make;
  }

  cell(labels: Attributes | undefined): Cell {
    if (labels === undefined) return (this.#plain ??= this.#at({}));
    return this.#at(labels);
  }

  *[Symbol.iterator](): Iterator<{ readonly labels: Attributes; readonly cell: Cell }> {
    yield* this.#cells.values();
  }

  #at(labels: Attributes): Cell {
    const key = labelsKey(labels);
    const known = this.#cells.get(key);
    if (known !== undefined) return known.cell;
    if (this.#cells.size >= seriesMax && labels !== overflow) return this.#at(overflow);
    const made = { labels, cell: this.#make() };
    this.#cells.set(key, made);
    return made.cell;
  }
}
