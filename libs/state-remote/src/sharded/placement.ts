import { ByteWriter, murmur3 } from '@millrace/kernel';

/**
 * Which instance serves which key group: the one with the highest hash of the two (rendezvous hashing; Thaler and Ravishankar,
 * 1998). The same for every task-runner that has the same names, whatever their order.
 */
export class Placement {
  readonly names: readonly string[];
  /** By key group: index into `names`. */
  readonly #owners: Uint16Array;

  constructor(names: readonly string[], maxParallelism: number) {
    this.names = names.toSorted();
    this.#owners = new Uint16Array(maxParallelism);
    for (let keyGroup = 0; keyGroup < maxParallelism; keyGroup++) {
      let best = -1;
      for (const [i, name] of this.names.entries()) {
        const weight = weightOf(name, keyGroup);
        if (weight <= best) continue;
        best = weight;
        this.#owners[keyGroup] = i;
      }
    }
  }

  /** Index of the instance in `names`. */
  owner(keyGroup: number): number {
    return this.#owners[keyGroup] as number;
  }
}

function weightOf(name: string, keyGroup: number): number {
  const writer = new ByteWriter(64);
  writer.u16be(keyGroup);
  writer.utf8(name);
  return murmur3(writer.bytes, 0, writer.position) >>> 0;
}
