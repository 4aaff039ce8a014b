import { ByteWriter } from '@millrace/kernel';
import type { Codec } from '../codec.ts';
import { keyCodec as canonicalKeys } from '../keys/key-codec.ts';
import { writeLength, writePrefix } from '../keys/key-layout.ts';
import type { Entry } from './entry.ts';

/**
 * Writes the stored keys of entries. Entries do not keep their bytes; the last one's are remembered here, because the
 * states of a key are written one after the other.
 */
export class EntryKeys {
  readonly #keyCodec: Codec<unknown>;
  readonly #part = new ByteWriter(128);
  readonly #suffix = new ByteWriter(128);
  #last: Entry | undefined;

  constructor(keyCodec: Codec<unknown>) {
    this.#keyCodec = keyCodec;
  }

  /** Key group · state id · length · key · length · namespace: all but the map key. */
  write(writer: ByteWriter, entry: Entry, stateId: number): void {
    writePrefix(writer, entry.keyGroup, stateId);
    if (entry !== this.#last) this.#encode(entry);
    writer.range(this.#suffix.bytes, 0, this.#suffix.position);
  }

  /** length · key · length · namespace, as a copy. */
  suffixOf(entry: Entry): Uint8Array {
    if (entry !== this.#last) this.#encode(entry);
    return this.#suffix.copy();
  }

  #encode(entry: Entry): void {
    const suffix = this.#suffix;
    suffix.reset();
    this.#add(this.#keyCodec, entry.key);
    if (entry.namespace === undefined) writeLength(suffix, 0);
    else this.#add(canonicalKeys as Codec<unknown>, entry.namespace);
    this.#last = entry;
  }

  #add(codec: Pick<Codec<unknown>, 'encode'>, value: unknown): void {
    const part = this.#part;
    part.reset();
    codec.encode(value, part);
    writeLength(this.#suffix, part.position);
    this.#suffix.range(part.bytes, 0, part.position);
  }
}
