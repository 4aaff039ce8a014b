import { ByteReader, ByteWriter, MillraceError } from '@millrace/kernel';
import { checkCompatible, decoderFor, type MapDescriptor, type PrimitiveKey, primitiveKey } from '@millrace/state';
import type { BroadcastMaps, BroadcastShape, WritableBroadcastMap, WritableBroadcastMaps } from '../api/broadcast.ts';
import type { OperatorContext } from '../runtime/operator.ts';

/** What all maps of an operator may hold together, encoded: it is part of the checkpoint's own object. */
const bytesMax = 1024 * 1024;

/** One map in a checkpoint. Plain JSON: keys and values encoded, in base64. */
interface StoredMap {
  readonly map: string;
  readonly keyFormat: string;
  readonly format: string;
  readonly entries: readonly (readonly [key: string, value: string])[];
}

/**
 * The broadcast maps of one subtask. Every subtask comes to the same maps, because each sees every broadcast record. In an
 * unaligned checkpoint one may be further than another, and what it has not seen is in flight before it. So each stores its
 * own, and a restored one takes those of the subtask whose broadcast records it replays: after these all are the same again.
 */
export class BroadcastState<B extends BroadcastShape> {
  /** For handlers of records. */
  readonly maps: BroadcastMaps<B>;
  /** For the handler of broadcast records. */
  readonly writable: WritableBroadcastMaps<B>;
  readonly #shape: B;
  readonly #held = new Map<string, HeldMap>();

  constructor(shape: B) {
    this.#shape = shape;
    for (const name of Object.keys(shape)) this.#held.set(name, new HeldMap());
    const held = [...this.#held];
    this.writable = Object.fromEntries(held) as unknown as WritableBroadcastMaps<B>;
    this.maps = Object.fromEntries(held.map(([name, map]) => [name, readOnly(map)])) as unknown as BroadcastMaps<B>;
  }

  restore(context: OperatorContext): void {
    const { restore = [] } = context.slot;
    const parallelismBefore = 1 + Math.max(0, ...restore.map((part) => part.subtask));
    const from = context.subtask % parallelismBefore;
    const own = restore.find((part) => part.operator === context.uid && part.subtask === from);
    for (const stored of (own?.list ?? []) as readonly StoredMap[]) {
      const held = this.#held.get(stored.map);
      if (held !== undefined) load(held, stored, this.#shape[stored.map] as MapDescriptor<unknown, unknown>);
      else if (context.slot.allowDroppedState !== true) throw droppedMap(stored.map);
    }
  }

  snapshot(): readonly StoredMap[] {
    const writer = new ByteWriter(256);
    let bytes = 0;
    const encoded = (write: () => void): string => {
      writer.reset();
      write();
      bytes += writer.position;
      return Buffer.from(writer.bytes.buffer, writer.bytes.byteOffset, writer.position).toString('base64');
    };
    const maps = [...this.#held].map(([name, held]): StoredMap => {
      const { keyCodec, codec } = this.#shape[name] as MapDescriptor<unknown, unknown>;
      const entries = [...held].map(
        ([key, value]) =>
          [encoded(() => keyCodec.encode(key, writer)), encoded(() => codec.encode(value, writer))] as const,
      );
      return { map: name, keyFormat: keyCodec.format, format: codec.format, entries };
    });
    if (bytes > bytesMax) throw tooLarge(bytes);
    return maps;
  }
}

/** A map whose keys are compared by content. */
class HeldMap implements WritableBroadcastMap<unknown, unknown> {
  readonly #entries = new Map<PrimitiveKey, readonly [unknown, unknown]>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: unknown): unknown {
    return this.#entries.get(primitiveKey(key))?.[1];
  }

  has(key: unknown): boolean {
    return this.#entries.has(primitiveKey(key));
  }

  set(key: unknown, value: unknown): void {
    this.#entries.set(primitiveKey(key), [key, value]);
  }

  delete(key: unknown): void {
    this.#entries.delete(primitiveKey(key));
  }

  clear(): void {
    this.#entries.clear();
  }

  [Symbol.iterator](): IterableIterator<readonly [unknown, unknown]> {
    return this.#entries.values();
  }
}

/** The types say it, too; this is for those who look past them. */
function readOnly(map: HeldMap): BroadcastMaps<BroadcastShape>[string] {
  return {
    get size() {
      return map.size;
    },
    get: (key: unknown) => map.get(key),
    has: (key: unknown) => map.has(key),
    [Symbol.iterator]: () => map[Symbol.iterator](),
  } as BroadcastMaps<BroadcastShape>[string];
}

function load(held: HeldMap, stored: StoredMap, { keyCodec, codec }: MapDescriptor<unknown, unknown>): void {
  checkCompatible(stored.keyFormat, keyCodec.format);
  checkCompatible(stored.format, codec.format);
  const decodeKey = decoderFor(keyCodec, stored.keyFormat);
  const decodeValue = decoderFor(codec, stored.format);
  for (const [key, value] of stored.entries) {
    held.set(decodeKey(readerOf(key)), decodeValue(readerOf(value)));
  }
}

function readerOf(base64: string): ByteReader {
  return new ByteReader(new Uint8Array(Buffer.from(base64, 'base64')));
}

function droppedMap(name: string): MillraceError {
  return new MillraceError(
    'state-incompatible',
    `the checkpoint holds the broadcast map ${name}, which the operator does not declare; declare it, or set allowDroppedState`,
    { details: { dropped: name } },
  );
}

function tooLarge(bytes: number): MillraceError {
  return new MillraceError(
    'broadcast-too-large',
    `the broadcast maps take ${bytes} bytes; ${bytesMax} are allowed, because every checkpoint holds them whole`,
    { details: { bytes, bytesMax } },
  );
}
