/**
 * Writes that the ring has not answered yet, and what order asks of them. They lie in parts, one behind the other, each with the
 * sequence its rows get. A part begins where a snapshot or a scan was issued, so that "all writes before" is "all parts
 * before"; a part that is held is not sent, and what comes behind it neither. Pure.
 */
export interface PendingWrite {
  readonly key: Uint8Array;
  readonly keyText: string;
  /** Undefined for a delete. */
  readonly value: Uint8Array | undefined;
  readonly expiresAtMs: number;
}

export interface WritePart {
  readonly sequence: number;
}

interface Part extends WritePart {
  sequence: number;
  holds: number;
  /** All that the ring has not answered, by key: an overwrite replaces. */
  readonly writes: Map<string, PendingWrite>;
  readonly unsent: Set<string>;
  readonly whenFirst: Array<() => void>;
}

/** A key's bytes as the key of a `Map`. */
export function keyText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

export function writeBytes({ key, value }: PendingWrite): number {
  return 64 + key.length + (value?.length ?? 0);
}

export class PendingWrites {
  readonly #parts: Part[] = [newPart(0)];
  #bytes = 0;

  /** Bytes of all that waits or is under way. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The sequence of the next write. */
  get sequence(): number {
    return this.#last.sequence;
  }

  put(write: PendingWrite): void {
    const { writes, unsent } = this.#last;
    const before = writes.get(write.keyText);
    if (before !== undefined) this.#bytes -= writeBytes(before);
    this.#bytes += writeBytes(write);
    writes.set(write.keyText, write);
    unsent.add(write.keyText);
  }

  /** The newest write of a key. */
  find(key: string): PendingWrite | undefined {
    for (let i = this.#parts.length - 1; i >= 0; i--) {
      const write = this.#parts[i]?.writes.get(key);
      if (write !== undefined) return write;
    }
    return undefined;
  }

  /** Takes up to `countMax` writes of one part that may be sent now, none of a key that `waits`. */
  take(countMax: number, waits: (key: string) => boolean): readonly [WritePart, readonly PendingWrite[]] | undefined {
    for (const part of this.#parts) {
      if (part.holds > 0) return undefined;
      const taken: PendingWrite[] = [];
      for (const key of part.unsent) {
        if (taken.length === countMax) break;
        if (waits(key)) continue;
        part.unsent.delete(key);
        taken.push(part.writes.get(key) as PendingWrite);
      }
      if (taken.length > 0) return [part, taken];
    }
    return undefined;
  }

  /** The ring has them. */
  done(part: WritePart, writes: readonly PendingWrite[]): void {
    const held = part as Part;
    for (const write of writes) {
      // Overwritten meanwhile: the newer one is accounted for by itself.
      if (held.writes.get(write.keyText) !== write) continue;
      held.writes.delete(write.keyText);
      this.#bytes -= writeBytes(write);
    }
    this.#advance();
  }

  /** What is written from here on lies in the returned part or behind it; all that was written before, in front of it. */
  divide(): WritePart {
    if (this.#last.writes.size > 0) this.#parts.push(newPart(this.#last.sequence));
    return this.#last;
  }

  /** Resolves when the ring has all that lies in front of `part`. */
  whenFirst(part: WritePart): Promise<void> {
    if (this.#parts[0] === part || !this.#parts.includes(part as Part)) return Promise.resolve();
    return new Promise((resolve) => (part as Part).whenFirst.push(resolve));
  }

  hold(part: WritePart): void {
    (part as Part).holds++;
  }

  release(part: WritePart): void {
    (part as Part).holds--;
  }

  /** `part`, of which nothing has been sent, and all behind it get later sequences than what is in front. */
  raise(part: WritePart): void {
    for (let i = this.#parts.indexOf(part as Part); i < this.#parts.length; i++) (this.#parts[i] as Part).sequence++;
  }

  get #last(): Part {
    return this.#parts.at(-1) as Part;
  }

  #advance(): void {
    for (;;) {
      const [first] = this.#parts as [Part];
      for (const resolve of first.whenFirst.splice(0)) resolve();
      if (this.#parts.length === 1 || first.writes.size > 0) return;
      this.#parts.shift();
    }
  }
}

function newPart(sequence: number): Part {
  return { sequence, holds: 0, writes: new Map(), unsent: new Set(), whenFirst: [] };
}
